"""One request of the native Responses route, from sign-in to the last byte.

Refusals in the standard form pass unchanged; anything else is converted to it. Clients of the Responses API read
`{"error": {"message", "type", "param", "code"}}`, and show their users nothing of the gateway's own `{"detail": …}`, of
an empty body or of an HTML page.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

from proxy.core.convert.openai_mode import LENIENT_TAKES_IT, UNSUPPORTED
from proxy.core.error_bodies import error_of_body, error_of_value
from proxy.core.hiding.texts import shown_bytes
from proxy.core.invalid import cut
from proxy.core.sse import encode_events, encode_json, load_json
from proxy.core.upstream_failures import is_refusal
from proxy.errors import UpstreamError, openai_body
from proxy.errors import headers as error_headers
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import Call, NativeAnswer, NativeEnd
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.catalog import LABEL, CodexModel, model_for
from proxy.providers.p1_codex.failures import PROFILE, client_error
from proxy.providers.p1_codex.native.body import native_body
from proxy.providers.p1_codex.native.leniency import takes_out
from proxy.providers.p1_codex.native.relay import RelayObserver, aggregated, passed_headers, relayed, unstreamed, whole
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.signed import Signer
from proxy.providers.upstream.adapter import RequestBody
from proxy.providers.upstream.transport import HttpTransport, OpenAnswer, refusal_of, unexpected

#: Text of a refusal -> the member that it is about, when the text does not name it, and the code.
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


#: Codes for members that the backend does not know, or not at that place.
_STRANGERS = (UNSUPPORTED, "unknown_parameter")


class ErrorAnswer:
    """An answer with an error status, read whole. `error` is its meaning.

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
        """The answer for the client: the upstream's status, and an error that it can read."""
        hints = {name.lower(): value for name, value in error_headers(self.error).items()}
        headers = {**hints, **passed_headers(self._headers)}
        body = self._body
        if not _is_standard(body):
            headers["content-type"] = "application/json"
            body = encode_json(openai_body(self._explained()))
        elif self._status == 400:
            body = self._with_advice(body)
        return NativeAnswer(self._status, headers, whole(body), NativeEnd(failure=self.error))

    def _explained(self) -> UpstreamError:
        """The error with the member that it is about, from the body or from its text."""
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
        """The body in the standard form, with advice when there is any."""
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


#: Names the model that served a request in place of the requested one.
SERVED_HEADER = "x-model-proxy-served"

_JSON = "application/json"

#: The result of one attempt: an answer to pass on, or a failure before any part of it.
Outcome = NativeAnswer | ErrorAnswer | UpstreamError


class NativeRoute:
    """Answers over HTTP only. Repeats a rate-limited request, since clients of this API do not wait, one that broke
    while a whole answer was collected, and once one with a refused token. Clients repeat after other failures
    themselves."""

    def __init__(self, signer: Signer, transport: HttpTransport) -> None:
        self._signer = signer
        self._services = signer.services
        self._transport = transport

    def _row(self, model: str, codex: CodexSettings) -> CodexModel:
        return model_for(model, codex.models, self._services.offered(LABEL))

    @asynccontextmanager
    async def answer(self, call: Call) -> AsyncGenerator[NativeAnswer, None]:
        """Yields the answer, its body still to be read. Raises ProxyError."""
        codex = (config := self._services.config()).section(CodexSettings)
        shaped = native_body(call.request, call.target, self._row(call.target.model, codex))
        body = RequestBody(shaped.body, large=call.large)
        headers = p1_request.headers(config, lite=shaped.lite, session=call.session)
        signed = self._signer.request(call.request_id, call.timings)
        await signed.sign_in()
        post = partial(signed.post, codex, headers, body.written, capture=call.capture)
        refused, broke = cast(ErrorAnswer | None, None), False
        async with AsyncExitStack() as stack:  # holds the answer of the attempt that counts

            async def send(number: int) -> NativeAnswer:
                nonlocal refused, broke
                call.record(UpstreamStarted(number))
                refused, broke = None, False
                opened = await stack.enter_async_context(self._transport.open(post(number)))
                outcome = await self._outcome(call, opened)
                if isinstance(outcome, NativeAnswer):
                    return outcome
                try:  # no name of this frame may keep the raised error, which refers to the frame
                    refused, broke = (outcome, False) if isinstance(outcome, ErrorAnswer) else (None, True)
                    failure = outcome if isinstance(outcome, UpstreamError) else outcome.error
                    opened.capture.failed(failure.message)
                    await stack.aclose()
                    raise failure
                finally:
                    del outcome, failure

            def repeats(error: UpstreamError) -> bool:
                return error.kind == "rate_limit" or (broke and call.request.get("stream") is not True)

            try:
                answer = await signed.attempts().ask(send, repeats)
            except UpstreamError as error:
                if refused is None or error is not refused.error:
                    raise
                error.with_traceback(None)
                answer = refused.answer()
            async with aclosing(answer.chunks):
                yield self._marked(call, answer)

    async def _outcome(self, call: Call, opened: OpenAnswer) -> Outcome:
        response = opened.response
        now, end = self._services.clock(), NativeEnd()
        if response.status != 200:
            if not is_refusal(response.status):
                return unexpected(PROFILE, response.status)
            return ErrorAnswer(response.status, response.headers, await opened.error_body(), now, call.request)
        headers, streams = passed_headers(response.headers), call.request.get("stream") is True
        try:
            if response.content_type == _JSON:
                events = await self._transport.whole(opened)
                body = unstreamed(events, end, now)
                if streams:
                    kind = {"content-type": "text/event-stream"}
                    return NativeAnswer(200, {**headers, **kind}, whole(encode_events(events)), end)
            elif streams:
                return NativeAnswer(200, headers, relayed(self._transport, opened, RelayObserver(end, now)), end)
            else:
                body, end.usage = await aggregated(self._transport, opened, now=now)
        except UpstreamError as error:
            return error
        return NativeAnswer(200, {**headers, "content-type": _JSON}, whole(encode_json(body)), end)

    def _marked(self, call: Call, answer: NativeAnswer) -> NativeAnswer:
        """The answer, marked when another model than the requested one gave it."""
        asked, served = (
            p1_request.native_target(call.model, call.request, self._services.config()).model,
            call.target.model,
        )
        if asked == served:
            return answer
        self._services.log.write("info", LABEL, "model_stood_in", reqId=call.request_id, asked=asked, served=served)
        return replace(answer, headers={**answer.headers, SERVED_HEADER: served})
