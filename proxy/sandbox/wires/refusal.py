"""A refusal of a simulated upstream, and the forms in which backends word it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from proxy.core.sse import dump_json


class Refused(Exception):
    """Makes the simulator answer `status` with `body` (JSON, or text when it is a string) instead of doing the work."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body
        self.headers = dict(headers or {})

    @property
    def message(self) -> str:
        """The message of the body, in any of the forms below."""
        if isinstance(self.body, str):
            return self.body
        error = self.body.get("error")
        return str(error["message"] if isinstance(error, dict) else self.body.get("detail", error))

    def response(self) -> web.Response:
        return plain_reply(self.status, self.body, self.headers)


def plain_reply(status: int, body: Any, headers: Mapping[str, str]) -> web.Response:
    """An HTTP answer without a stream: a text unchanged (HTML unless the headers say otherwise), anything else as
    JSON."""
    text = body if isinstance(body, str) else dump_json(body)
    named = any(name.lower() == "content-type" for name in headers)
    content_type = None if named else ("text/html" if isinstance(body, str) else "application/json")
    return web.Response(status=status, text=text, headers=headers, content_type=content_type)


def detail(text: str, status: int = 400) -> Refused:
    """The gateway's own form: `{"detail": text}`."""
    return Refused(status, {"detail": text})


def invalid(
    message: str,
    *,
    status: int = 400,
    code: str | None = None,
    param: str | None = None,
    kind: str = "invalid_request_error",
) -> Refused:
    """The model service's form: `{"error": {"message", "type", "param", "code"}}`."""
    return Refused(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


class _Lenient(dict[str, Any]):
    """Reads missing members as None."""

    def __missing__(self, name: str) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of a check, in either form (`bare` is that of `detail`).

    `words` and `param` may name {where} (the place of the value), {here} (of the object around it), {value},
    {expected}, {item[name]} (a member of the object around it), and {index} (of that object in its list)."""

    words: str
    code: str | None = None
    param: str | None = "{where}"
    status: int = 400
    bare: bool = False

    def about(self, param: str | None) -> Refusal:
        """This refusal with another `param`."""
        return replace(self, param=param)

    def fill(self, where: str, here: str = "", value: Any = None, expected: str = "", item: Any = None) -> Refused:
        item = _Lenient(item) if isinstance(item, dict) else item
        index = here.rpartition("[")[2].rstrip("]")
        known = {"where": where, "here": here, "value": value, "expected": expected, "item": item, "index": index}
        words = self.words.format_map(known)
        if self.bare:
            return detail(words, self.status)
        return invalid(words, status=self.status, code=self.code, param=self.param and self.param.format_map(known))


def bare(words: str, status: int = 400) -> Refusal:
    """A refusal in the gateway's own form."""
    return Refusal(words, status=status, bare=True)


def plain(words: str) -> Refusal:
    """A refusal without code and parameter."""
    return Refusal(words, param=None)


MISSING = Refusal("Missing required parameter: '{where}'.", "missing_required_parameter")
WRONG_VALUE = Refusal("Invalid value for '{where}': expected {expected}.", "invalid_value")
WRONG_TYPE = Refusal("Invalid type for '{where}': expected {expected}.", "invalid_type")
NOT_ONE_OF = Refusal("Invalid value: '{value}'. Supported values are: {expected}.", "invalid_value")
UNKNOWN = Refusal("Unknown parameter: '{where}'.", "unknown_parameter")
EXTRA = plain("{where}: Extra inputs are not permitted")
