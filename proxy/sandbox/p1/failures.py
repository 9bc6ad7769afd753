"""The failures of P1 as HTTP answers."""

from __future__ import annotations

import time

from proxy.sandbox.play.actions import Reply
from proxy.sandbox.play.http_faults import FRONT_FAULTS, HttpFault, wait_header
from proxy.sandbox.wires.responses.failures import error_object


def _rate_limit(seconds: float = 1, status: int = 429) -> Reply:
    error = {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "Rate limit reached."}
    return Reply(status, {"error": error}, wait_header(seconds))


def _usage_limit(seconds: int = 3600) -> Reply:
    """The plan's window is used up; no retry before the reset helps."""
    error = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": int(time.time()) + seconds,
        "resets_in_seconds": seconds,
    }
    headers = {
        "x-codex-primary-used-percent": "100.0",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(error["resets_at"]),
        "x-codex-active-limit": "codex",
    }
    return Reply(429, {"error": error}, headers)


def _overloaded(status: int = 503, retry_after: float | None = None) -> Reply:
    error = error_object("server_is_overloaded", type="server_error")
    return Reply(status, {"error": error}, wait_header(retry_after))


def _server_error(status: int = 500) -> Reply:
    return Reply(status, {"error": error_object("server_error", type="server_error")})


def _unauthorized() -> Reply:
    error = {"message": "Provided authentication token is expired.", "type": None, "code": "token_expired"}
    return Reply(401, {"error": error, "status": 401})


def _forbidden(message: str = "Access denied") -> Reply:
    return Reply(403, {"detail": message})


def _context_http() -> Reply:
    error = error_object("context_length_exceeded", type="invalid_request_error", param="input")
    return Reply(400, {"error": error})


def _unsealable() -> Reply:
    """As if the history came from another account."""
    message = "The encrypted content gAAAAA...AAAA could not be verified. Reason: it could not be decrypted or parsed."
    error = {
        "message": message,
        "type": "invalid_request_error",
        "code": "thinking_signature_invalid",
        "param": "input",
    }
    return Reply(400, {"error": error})


HTTP_FAULTS: dict[str, HttpFault] = {
    **FRONT_FAULTS,
    "rate_limit": _rate_limit,
    "usage_limit": _usage_limit,
    "huge_retry_after": lambda seconds=86_400: _rate_limit(seconds),
    "overloaded": _overloaded,
    "server_error": _server_error,
    "unauthorized": _unauthorized,
    "forbidden": _forbidden,
    "context_http": _context_http,
    "unsealable": _unsealable,
}
