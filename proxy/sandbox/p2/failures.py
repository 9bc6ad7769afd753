"""The failures of P2 as HTTP answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxy.sandbox.p2.issuer import NOT_AN_AGENT
from proxy.sandbox.play.http_faults import FRONT_FAULTS, HttpFault, Values, failure


def _error(kind: str, message: str = "") -> Callable[[Values], dict[str, Any]]:
    """`{"error":{"message","type","code"}}`, with `wrapped` inside of `{"type":"error", …}`; a step may have other
    words."""

    def body(values: Values) -> dict[str, Any]:
        said = values.get("message", message)
        error = {"error": {"message": said, "type": kind, "code": None}}
        return {"type": "error", **error} if values.get("wrapped") else error

    return body


def _context(values: Values) -> dict[str, Any]:
    limit, tokens = values["limit"], values["tokens"]
    message = f"Invalid request: Your request exceeded model token limit: {limit} (requested: {tokens})"
    return _error("invalid_request_error", message)(values)


_RATE_LIMIT = _error(
    "rate_limit_reached_error", "Your request was rejected: rate limit reached. Please try again later."
)
_QUOTA = "You exceeded your current quota, please check your account balance."
_OVERLOADED = "The engine is currently overloaded, please try again later."

HTTP_FAULTS: dict[str, HttpFault] = {
    **FRONT_FAULTS,
    "rate_limit": failure(429, _RATE_LIMIT, seconds=1, status=429, wrapped=False),
    "usage_limit": failure(429, _error("exceeded_current_quota_error", _QUOTA), seconds=None),
    "huge_retry_after": failure(429, _RATE_LIMIT, seconds=86_400),
    "overloaded": failure(529, _error("engine_overloaded_error", _OVERLOADED), status=529, retry_after=None),
    "server_error": failure(500, _error("server_error", "Internal server error"), status=500),
    "unauthorized": failure(401, _error("invalid_authentication_error", "The access token is expired or was revoked.")),
    "payment_required": failure(
        402, _error("payment_required_error"), message="Your membership has ended. Please renew it."
    ),
    "forbidden": failure(403, _error("access_terminated_error"), message=NOT_AN_AGENT),
    "context_http": failure(400, _context, limit=262_144, tokens=300_000),
    "bad_request": failure(
        400,
        _error("invalid_request_error"),
        message="Invalid request: the body is not understood",
        status=400,
    ),
}
