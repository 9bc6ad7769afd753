"""The failures of P1 as HTTP answers."""

from __future__ import annotations

import time
from typing import Any

from proxy.sandbox.play.actions import FRONT_FAULTS, HttpFault, Values, failure
from proxy.sandbox.wires.encrypted_content import unverifiable
from proxy.sandbox.wires.responses.answer import error_object


def _reset_at(values: Values) -> int:
    return int(time.time()) + int(values["seconds"])


def _usage_limit(values: Values) -> dict[str, Any]:
    """The refusal for a used-up window of the plan; no retry before the reset helps."""
    resets = {"resets_at": _reset_at(values), "resets_in_seconds": values["seconds"]}
    error = {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}
    return {"error": {**error, **resets}}


def _usage_headers(values: Values) -> dict[str, str]:
    return {
        "x-codex-primary-used-percent": "100.0",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(_reset_at(values)),
        "x-codex-active-limit": "codex",
    }


def _error(code: str, kind: str, **members: Any) -> dict[str, Any]:
    """The error in the form that events use as well."""
    return {"error": error_object(code, type=kind, **members)}


_RATE_LIMIT = {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "Rate limit reached."}
_EXPIRED = {"message": "Provided authentication token is expired.", "type": None, "code": "token_expired"}
_OVERLOADED = _error("server_is_overloaded", "server_error")

HTTP_FAULTS: dict[str, HttpFault] = {
    **FRONT_FAULTS,
    "rate_limit": failure(429, {"error": _RATE_LIMIT}, seconds=1, status=429),
    "usage_limit": failure(429, _usage_limit, _usage_headers, seconds=3600),
    "huge_retry_after": failure(429, {"error": _RATE_LIMIT}, seconds=86_400),
    "overloaded": failure(503, _OVERLOADED, status=503, retry_after=None),
    "server_error": failure(500, _error("server_error", "server_error"), status=500),
    "unauthorized": failure(401, {"error": _EXPIRED, "status": 401}),
    "forbidden": failure(403, lambda values: {"detail": values["message"]}, message="Access denied"),
    "context_http": failure(400, _error("context_length_exceeded", "invalid_request_error", param="input")),
    # as if the history came from another account
    "unsealable": failure(400, unverifiable("gAAAAA" + "A" * 10, "it could not be decrypted or parsed.").body),
}
