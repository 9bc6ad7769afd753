"""The failures of P2 as HTTP answers."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.p2.headers import NOT_AN_AGENT
from proxy.sandbox.play.actions import Reply
from proxy.sandbox.play.http_faults import FRONT_FAULTS, HttpFault, wait_header


def failure(
    status: int, kind: str, message: str, *, seconds: float | None = None, wrapped: bool = False, code: Any = None
) -> Reply:
    """`{"error":{"message","type","code"}}`, with `wrapped` inside of `{"type":"error", …}`."""
    error = {"message": message, "type": kind, "code": code}
    body = {"type": "error", "error": error} if wrapped else {"error": error}
    return Reply(status, body, wait_header(seconds))


def _rate_limit(seconds: float | None = 1, status: int = 429, wrapped: bool = False) -> Reply:
    """`seconds` None: without the header."""
    message = "Your request was rejected: rate limit reached. Please try again later."
    return failure(status, "rate_limit_reached_error", message, seconds=seconds, wrapped=wrapped)


def _usage_limit(seconds: float | None = None) -> Reply:
    """The quota of the plan is used up; no retry helps."""
    message = "You exceeded your current quota, please check your account balance."
    return failure(429, "exceeded_current_quota_error", message, seconds=seconds)


def _overloaded(status: int = 529, retry_after: float | None = None) -> Reply:
    message = "The engine is currently overloaded, please try again later."
    return failure(status, "engine_overloaded_error", message, seconds=retry_after)


def _server_error(status: int = 500) -> Reply:
    return failure(status, "server_error", "Internal server error")


def _unauthorized() -> Reply:
    return failure(401, "invalid_authentication_error", "The access token is expired or was revoked.")


def _payment_required(message: str = "Your membership has ended. Please renew it.") -> Reply:
    return failure(402, "payment_required_error", message)


def _forbidden(message: str = NOT_AN_AGENT) -> Reply:
    return failure(403, "access_terminated_error", message)


def _context_http(limit: int = 262_144, tokens: int = 300_000) -> Reply:
    message = f"Invalid request: Your request exceeded model token limit: {limit} (requested: {tokens})"
    return failure(400, "invalid_request_error", message)


def _bad_request(message: str = "cannot specify both 'thinking' and 'reasoning_effort'", status: int = 400) -> Reply:
    return failure(status, "invalid_request_error", message)


HTTP_FAULTS: dict[str, HttpFault] = {
    **FRONT_FAULTS,
    "rate_limit": _rate_limit,
    "usage_limit": _usage_limit,
    "huge_retry_after": lambda seconds=86_400: _rate_limit(seconds),
    "overloaded": _overloaded,
    "server_error": _server_error,
    "unauthorized": _unauthorized,
    "payment_required": _payment_required,
    "forbidden": _forbidden,
    "context_http": _context_http,
    "bad_request": _bad_request,
}
