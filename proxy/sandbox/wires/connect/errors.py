"""Connect's errors: a code, words, and details; as HTTP answers and at the end of a stream."""

from __future__ import annotations

import base64
from typing import Any

from proxy.sandbox.wires.refusal import Refused

#: Code -> status of the HTTP answer where there is no stream.
STATUSES = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}


def connect_error(code: str | None, message: str | None = None, debug: dict[str, Any] | None = None) -> dict[str, Any]:
    """`{"code","message","details"}`; what is None is not there. `debug` is the readable form of the one detail, whose
    value is opaque."""
    error: dict[str, Any] = {} if code is None else {"code": code}
    if message is not None:
        error["message"] = message
    if debug:
        value = base64.b64encode(str(debug.get("error", "")).encode()).decode().rstrip("=")
        error["details"] = [{"type": "aiserver.v1.ErrorDetails", "value": value, "debug": debug}]
    return error


class Failed(Exception):
    """A call that is not served, in Connect's words: a stream ends with them, another call is answered so."""

    def __init__(self, code: str, message: str, debug: dict[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.body = connect_error(code, message, debug)

    def refused(self) -> Refused:
        """The same as an HTTP answer."""
        return Refused(STATUSES[self.code], self.body)
