"""The failures of P4 as HTTP answers: the gateway's own classes, and those of what is behind it."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.p4.gateway import gateway_error, provider_error
from proxy.sandbox.play.actions import Reply
from proxy.sandbox.play.http_faults import FRONT_FAULTS, HttpFault, Values, failure, wait_header

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


def _gateway_error(
    kind: str = "CreditsError", message: str | None = None, status: int | None = None, seconds: float | None = None
) -> Reply:
    """An error of that class (see CLASSES), by default with the status and the words it usually has."""
    usual, words = CLASSES.get(kind, (400, "Something went wrong."))
    body = gateway_error(0, kind, message or words).body
    return Reply(status or usual, body, wait_header({"seconds": seconds}))


def _body(kind: str, message: str | None = None) -> Any:
    return _gateway_error(kind, message).body


def _usage_limit(values: Values) -> dict[str, Any]:
    """A window of the subscription is used up: "5 hour", "weekly" or "monthly"."""
    window, seconds = values["window"], values["seconds"]
    message = f"{window.capitalize()} usage limit reached. It will reset in {seconds} seconds."
    return {**_body("GoUsageLimitError", message), "metadata": {"workspace": "wrk_sandbox", "limitName": window}}


def _provider_error(message: str = "bad request", vendor: str = "Console Go", status: int = 400) -> Reply:
    refused = provider_error(vendor, message, status=status)
    return Reply(refused.status, refused.body)


_RATE_LIMIT = _body("RateLimitError")
_TOO_LONG = "prompt is too long: the maximum context length is exceeded"

HTTP_FAULTS: dict[str, HttpFault] = {
    **FRONT_FAULTS,
    "gateway_error": _gateway_error,
    "rate_limit": failure(429, _RATE_LIMIT, seconds=1, status=429),
    "huge_retry_after": failure(429, _RATE_LIMIT, seconds=86_400),
    "usage_limit": failure(429, _usage_limit, seconds=3600, window="5 hour"),
    "overloaded": failure(529, _body("overloaded_error", "Overloaded"), status=529, retry_after=None),
    # this one lacks the outer type
    "server_error": failure(500, {"error": {"type": "error", "message": "Internal server error"}}, status=500),
    "unauthorized": failure(401, _body("AuthError")),
    "payment_required": failure(
        402, lambda values: _body("CreditsError", values["message"]), message="Payment required."
    ),
    "forbidden": lambda kind="EntitlementError": _gateway_error(kind),
    "client_closed": failure(499, ""),
    "context_http": lambda: _provider_error(_TOO_LONG),
    "bad_request": _provider_error,
    # a body that is no JSON
    "plain_error": failure(
        418,
        lambda values: values["body"],
        lambda _: {"content-type": "text/plain"},
        status=418,
        body="I am a teapot",
    ),
}
