"""The failures of P4 as HTTP answers: the gateway's own classes, and those of what is behind it."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.p4.gateway import gateway_error, provider_error
from proxy.sandbox.play.actions import Reply
from proxy.sandbox.play.http_faults import FRONT_FAULTS, HttpFault, wait_header
from proxy.sandbox.wires.refusal import Refused

#: Classes that the gateway tells with a status that one would not guess -> status and message.
CLASSES = {
    "AuthError": (401, "Invalid API key."),
    "ModelError": (401, "Model is disabled"),
    "CreditsError": (401, "Insufficient balance. Manage your billing in the console."),
    "MonthlyLimitError": (401, "Your workspace has reached its monthly spending limit."),
    "UserLimitError": (401, "You have reached your monthly spending limit."),
    "RegionError": (403, "Model is not available in your region."),
    "EntitlementError": (403, "OpenCode Go subscription required."),
    "RateLimitError": (429, "Rate limit exceeded. Please try again later."),
    "FreeUsageLimitError": (429, "Free usage exceeded."),
    "BlackUsageLimitError": (429, "Subscription quota exceeded."),
    "MissingSessionID": (400, "Error from provider (Console Go): the request cannot be routed efficiently."),
}


def _reply(refused: Refused) -> Reply:
    return Reply(refused.status, refused.body, refused.headers)


def _gateway_error(
    kind: str = "CreditsError", message: str | None = None, status: int | None = None, seconds: float | None = None
) -> Reply:
    """An error of that class (see CLASSES), by default with the status and the words it usually has."""
    usual, words = CLASSES.get(kind, (400, "Something went wrong."))
    return _reply(gateway_error(status or usual, kind, message or words, wait_header(seconds)))


def _usage_limit(seconds: int = 3600, window: str = "5 hour") -> Reply:
    """A window of the subscription is used up: "5 hour", "weekly" or "monthly"."""
    message = f"{window.capitalize()} usage limit reached. It will reset in {seconds} seconds."
    reply = _gateway_error("GoUsageLimitError", message, 429, seconds)
    return Reply(429, {**reply.body, "metadata": {"workspace": "wrk_sandbox", "limitName": window}}, reply.headers)


def _server_error(status: int = 500) -> Reply:
    """This one lacks the outer type."""
    return Reply(status, {"error": {"type": "error", "message": "Internal server error"}})


def _provider_error(message: str = "bad request", vendor: str = "Console Go", status: int = 400) -> Reply:
    return _reply(provider_error(vendor, message, status=status))


def _plain_error(status: int = 418, body: Any = "I am a teapot") -> Reply:
    """A body that is no JSON."""
    return Reply(status, body, {"content-type": "text/plain"})


HTTP_FAULTS: dict[str, HttpFault] = {
    **FRONT_FAULTS,
    "gateway_error": _gateway_error,
    "rate_limit": lambda seconds=1, status=429: _gateway_error("RateLimitError", status=status, seconds=seconds),
    "huge_retry_after": lambda seconds=86_400: _gateway_error("RateLimitError", seconds=seconds),
    "usage_limit": _usage_limit,
    "overloaded": lambda status=529, retry_after=None: _gateway_error(
        "overloaded_error", "Overloaded", status, retry_after
    ),
    "server_error": _server_error,
    "unauthorized": lambda: _gateway_error("AuthError"),
    "payment_required": lambda message="Payment required.": _gateway_error("CreditsError", message, 402),
    "forbidden": lambda kind="EntitlementError": _gateway_error(kind),
    "client_closed": lambda: Reply(499, ""),
    "context_http": lambda: _provider_error("prompt is too long: the maximum context length is exceeded"),
    "bad_request": _provider_error,
    "plain_error": _plain_error,
}
