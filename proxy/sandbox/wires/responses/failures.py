"""The failures that a Responses backend reports in events, with the words it uses."""

from __future__ import annotations

from typing import Any

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


def error_object(code: str | int, message: str | None = None, **members: Any) -> dict[str, Any] | None:
    """The error object for a code; an unknown code gets a generic message, a given message replaces the usual one."""
    known = FAILURES.get(str(code), {"message": "Something went wrong."})
    if known is None:
        return None
    said = known["message"] if message is None else message
    return {"code": code, **known, "message": said, **members}
