"""Refusals on the native route: in the standard form they pass as they are, anything else is put into it.

Clients of the Responses API read `{"error": {"message", "type", "param", "code"}}`; of the gateway's own
`{"detail": …}`, of an empty body or of an HTML page their users see nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proxy.core.convert.openai_mode import LENIENT_TAKES_IT, UNSUPPORTED
from proxy.core.error_bodies import error_of_body, error_of_value, shown_bytes
from proxy.core.invalid import cut
from proxy.core.sse import encode_json, load_json
from proxy.errors import UpstreamError, openai_body
from proxy.errors import headers as error_headers
from proxy.providers.contract import NativeAnswer, NativeEnd
from proxy.providers.p1_codex.failures import PROFILE, client_error
from proxy.providers.p1_codex.native.leniency import takes_out
from proxy.providers.p1_codex.native.relay import passed_headers, whole
from proxy.providers.upstream.transport import refusal_of

#: What the text of a refusal says -> the member that it is about, where the text does not name it, and the code.
_ABOUT: tuple[tuple[re.Pattern[str], str | None, str | None], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), param, code)
    for pattern, param, code in (
        (r"unsupported parameter: '?(?P<param>[\w.\[\]]+)", None, "unsupported_parameter"),
        (r"unknown parameter: '?(?P<param>[\w.\[\]]+)", None, "unknown_parameter"),
        (r"missing required parameter: '?(?P<param>[\w.\[\]]+)", None, "missing_required_parameter"),
        (r"(?:invalid|unsupported) (?:type|value) for '(?P<param>[^']+)'", None, None),
        (r"unsupported (?P<param>service_tier)\b", None, "unsupported_value"),
        (r"\b(?P<param>store|stream|input|instructions) must be ", None, None),
        (r"(?:the '[^']*' model is not supported|model not found)", "model", "model_not_found"),
    )
)


#: Codes of members that the backend does not know, or not there.
_STRANGERS = (UNSUPPORTED, "unknown_parameter")


class Refusal:
    """An answer with an error status, read whole. `error` is what it means.

    asked  the caller's body
    """

    def __init__(
        self, status: int, headers: Mapping[str, str], body: bytes, now: float, asked: Mapping[str, Any]
    ) -> None:
        self._asked = asked
        self._status = status
        self._headers = headers
        self._body = shown_bytes(body)
        self.error = client_error(refusal_of(PROFILE, status, headers, body, now=now))

    def answer(self) -> NativeAnswer:
        """What the client gets: the upstream's status, and an error that it can read."""
        hints = {name.lower(): value for name, value in error_headers(self.error).items()}
        headers = {**hints, **passed_headers(self._headers)}
        body = self._body
        if not _is_standard(body):
            headers["content-type"] = "application/json"
            body = encode_json(openai_body(self._told()))
        elif self._status == 400:
            body = self._with_advice(body)
        return NativeAnswer(self._status, headers, whole(body), NativeEnd(failure=self.error))

    def _told(self) -> UpstreamError:
        """The error with the member that it is about: as the body names it, or its text."""
        named = error_of_body(self._body).get("param")
        if isinstance(named, str) and named:
            return self.error.replaced(param=cut(named))
        for pattern, about, code in _ABOUT:
            found = pattern.search(self.error.message)
            if found is not None:
                param = about or cut(found["param"])
                param, code = param.lower() if param.istitle() else param, self.error.code or code
                return self.error.replaced(
                    param=param, code=code, message=self.error.message + self._advice(param, code)
                )
        return self.error

    def _with_advice(self, body: bytes) -> bytes:
        """A body in the standard form, which else goes as it is."""
        value = load_json(body.decode())
        error = value["error"]
        advice = self._advice(error.get("param"), error.get("code"))
        return encode_json({**value, "error": {**error, "message": error["message"] + advice}}) if advice else body

    def _advice(self, param: Any, code: Any) -> str:
        known = isinstance(param, str) and code in _STRANGERS
        return LENIENT_TAKES_IT if known and takes_out(self._asked, param) else ""


def _is_standard(body: bytes) -> bool:
    try:
        parsed = load_json(body.decode())
    except (ValueError, RecursionError):
        return False
    error = parsed.get("error") if isinstance(parsed, Mapping) else None
    return isinstance(error, Mapping) and "type" in error and error_of_value(parsed) is error and _has_words(error)


def _has_words(error: Mapping[str, Any]) -> bool:
    return isinstance(error.get("message"), str) and bool(error["message"].strip())
