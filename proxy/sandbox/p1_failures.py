"""The failures that the backend reports, with the words it uses: as HTTP answers and as error objects in events.

Each HTTP fault is a function of the parameters of its script step; its signature is the list of those parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from proxy.sandbox.moves import Reply

CONTEXT_MESSAGE = "Your input exceeds the context window of this model. Please adjust your input and try again."

#: Code of a failed response -> the error object that comes with it. `unexplained` has none.
FAILURES: dict[str, dict[str, Any] | None] = {
    "context_length_exceeded": {"message": CONTEXT_MESSAGE},
    "insufficient_quota": {"message": "You exceeded your current quota, please check your plan and billing details."},
    "usage_not_included": {"message": "To use Codex with your ChatGPT plan, upgrade to Plus."},
    "usage_limit_reached": {
        "message": "The usage limit has been reached",
        "type": "usage_limit_reached",
        "plan_type": "plus",
        "resets_in_seconds": 3600,
    },
    "cyber_policy": {"message": ""},
    "invalid_prompt": {"message": "Invalid prompt: we've limited access to this content for safety reasons."},
    "bio_policy": {"message": ""},
    "server_is_overloaded": {"message": "Our servers are currently overloaded. Please try again later."},
    "slow_down": {"message": "Please slow down."},
    "rate_limit_exceeded": {"message": "Rate limit reached for this model. Please try again in 1.3s."},
    "overloaded_error": {"message": "busy", "type": "overloaded_error"},
    "server_error": {"message": "An error occurred while processing your request. You can retry your request."},
    "internal_server_error": {"message": "Internal server error"},
    "previous_response_not_found": {"message": "Previous response with id 'resp_0' not found."},
    "websocket_connection_limit_reached": {"message": "Responses websocket connection limit reached (60 minutes)."},
    "unexplained": None,
}


def error_object(code: str, message: str | None = None, **members: Any) -> dict[str, Any] | None:
    """The error object for a code; an unknown code gets a generic message, a given message replaces the usual one."""
    known = FAILURES.get(code, {"message": "Something went wrong."})
    if known is None:
        return None
    said = known["message"] if message is None else message
    return {"code": code, **known, "message": said, **members}


def _rate_limit(seconds: float = 1, status: int = 429) -> Reply:
    error = {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "Rate limit reached."}
    return Reply(status, {"error": error}, {"retry-after": f"{seconds:g}"})


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
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Reply(status, {"error": error_object("server_is_overloaded", type="server_error")}, headers)


def _server_error(status: int = 500) -> Reply:
    return Reply(status, {"error": error_object("server_error", type="server_error")})


def _html_error(status: int = 502) -> Reply:
    """What a load balancer in front of the backend says."""
    page = f"<html><head><title>{status}</title></head><body><h1>{status}</h1><p>Bad gateway</p></body></html>"
    return Reply(status, page)


def _redirect(location: str = "/elsewhere", status: int = 302) -> Reply:
    """A client that follows it would carry its credential there."""
    return Reply(status, "", {"location": location})


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


HTTP_FAULTS: dict[str, Callable[..., Reply]] = {
    "rate_limit": _rate_limit,
    "usage_limit": _usage_limit,
    "huge_retry_after": lambda seconds=86_400: _rate_limit(seconds),
    "overloaded": _overloaded,
    "server_error": _server_error,
    "html_error": _html_error,
    "redirect": _redirect,
    "unauthorized": _unauthorized,
    "forbidden": _forbidden,
    "context_http": _context_http,
    "unsealable": _unsealable,
}
