"""A refusal of a simulated upstream, and the shapes in which such a backend words it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.core.sse import dump_json


class Refused(Exception):
    """The simulator answers `status` with `body` (JSON, or text when it is a string) instead of doing the work."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body
        self.headers = dict(headers or {})

    @property
    def message(self) -> str:
        """What it says, in whichever of the shapes below."""
        if isinstance(self.body, str):
            return self.body
        error = self.body.get("error")
        return str(error["message"] if isinstance(error, dict) else self.body.get("detail", error))

    def response(self) -> web.Response:
        return plain_reply(self.status, self.body, self.headers)


def plain_reply(status: int, body: Any, headers: Mapping[str, str]) -> web.Response:
    """One HTTP answer without a stream: a text as it is (HTML unless the headers say otherwise), the rest as JSON."""
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
