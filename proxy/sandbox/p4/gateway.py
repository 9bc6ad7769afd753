"""The checks of P4's gateway before a request reaches a model: key, session, a model of this wire, a tidy client.

The rules for a tidy client cover what the gateway itself would let pass: no second key, no header of another wire, its
own user agent, no chat member that one of its models is known to refuse. `options.tidy_client` switches them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.sandbox.p1.responses import TOP_LEVEL as P1_MEMBERS
from proxy.sandbox.p4.catalog import MODELS
from proxy.sandbox.p4.state import P4Options
from proxy.sandbox.play.actions import FRONT_FAULTS, HttpFault, Reply, Values, failure, wait_header
from proxy.sandbox.wires.field_checks import Known, Table, check
from proxy.sandbox.wires.refusal import EXTRA, Refused, invalid
from proxy.sandbox.wires.responses.checks import PLAIN_MEMBERS, REST, ResponsesRules

SESSION = "x-opencode-session"

#: The vendor client's headers about itself: its kind, its project, the turn. Nothing depends on them.
CLIENT_HEADERS = ("x-opencode-client", "x-opencode-project", "x-opencode-request")

#: Beginnings of HTTP libraries' user agents.
_LIBRARIES = ("aiohttp", "axios", "curl/", "go-http-client", "node", "okhttp", "python", "reqwest", "undici", "wget")

#: Members of a chat body that a client of this gateway never sends.
_UNTIDY = (
    *("top_k", "stop", "stop_sequences", "metadata", "user", "thinking", "prompt_cache_key", "context_management"),
)


#: Top-level members of a Responses body, besides those that P1 accepts.
_RESPONSES_MEMBERS = (
    "max_output_tokens max_tool_calls metadata previous_response_id prompt_cache_retention safety_identifier "
    "stream_options temperature top_logprobs top_p truncation user"
)

RESPONSES: Table = (Known(f"{P1_MEMBERS} {_RESPONSES_MEMBERS}"), *PLAIN_MEMBERS, *REST)

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def gateway_error(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Refused:
    """`{"type":"error","error":{"type","message"}}`"""
    return Refused(status, {"type": "error", "error": {"type": kind, "message": message}}, headers)


def provider_error(vendor: str, message: str, *, status: int = 400, kind: str = "invalid_request_error") -> Refused:
    """An error from the provider behind the gateway, marked as such. A 404 becomes a 400."""
    return gateway_error(400 if status == 404 else status, kind, f"Error from provider ({vendor}): {message}")


def check_key(headers: Mapping[str, str], wire: str, key: str) -> None:
    """Checks the key: in its own header on the messages wire, in `authorization` everywhere else."""
    if wire == "messages":
        given = headers.get("x-api-key", "")
    else:
        given = "".join(headers.get("authorization", "").split()[1:2])
    if not given:
        raise gateway_error(401, "AuthError", "Missing API key.")
    if given != key:
        raise gateway_error(401, "AuthError", "Invalid API key.")


def checked_model(body: Any, wire: str) -> str:
    """The name of a model that is served on the wire. Raises Refused."""
    if not isinstance(body, dict):
        raise gateway_error(400, "invalid_request_error", "Invalid JSON body")
    name = body.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise gateway_error(401, "ModelError", f"Model {name} is not supported")
    if wire not in MODELS[name].wires:
        raise gateway_error(401, "ModelError", f"Model {name} is not supported for format {wire}")
    return name


def check_session(headers: Mapping[str, str]) -> None:
    if not headers.get(SESSION, "").strip():
        message = f"Missing {SESSION} header: the request cannot be routed efficiently without a session id."
        raise provider_error("Console Go", message, kind="MissingSessionID")


def check_account(name: str, options: P4Options) -> None:
    """Checks that the account may use the model here and now."""
    if not options.subscribed:
        raise gateway_error(403, "EntitlementError", "OpenCode Go subscription required.")
    if name in options.blocked_models:
        raise gateway_error(403, "RegionError", f"Model {name} is not available in your region.")


def _accepts(accept: str, kind: str) -> bool:
    return kind in accept or "*/*" in accept


def check_tidiness(headers: Mapping[str, str], wire: str, *, stream: bool) -> None:
    """Checks the header rules of a tidy client."""
    faults = {
        "the key is in two headers": "authorization" in headers and "x-api-key" in headers,
        "anthropic-version is missing": wire == "messages" and "anthropic-version" not in headers,
        "anthropic-version belongs to /messages": wire != "messages" and "anthropic-version" in headers,
        "the user agent is that of an HTTP library": headers.get("user-agent", "python").lower().startswith(_LIBRARIES),
        "content-type is not application/json": not headers.get("content-type", "").startswith("application/json"),
        "accept does not fit": not _accepts(
            headers.get("accept", ""), "text/event-stream" if stream else "application/json"
        ),
    }
    for fault, present in faults.items():
        if present:
            raise gateway_error(400, "invalid_request_error", f"Untidy client: {fault}")


def check_chat_tidiness(body: Mapping[str, Any]) -> None:
    """Checks an otherwise valid chat body for odd members, and for system messages after the first."""
    for name in _UNTIDY:
        if name in body:
            raise EXTRA.fill(name)
    for number, message in enumerate(body["messages"]):
        if "cache_control" in message:
            raise EXTRA.fill(f"messages[{number}].cache_control")
        if number and message["role"] in ("system", "developer"):
            raise invalid(f"messages[{number}]: a system message must be the first")


def check_responses(body: Mapping[str, Any], account_id: str) -> None:
    check(body, RESPONSES, ResponsesRules(_EFFORTS, account_id))


#: Error classes with a surprising status -> status and message.
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
    """An error of that class (see CLASSES), by default with its usual status and message."""
    usual, words = CLASSES.get(kind, (400, "Something went wrong."))
    body = gateway_error(0, kind, message or words).body
    return Reply(status or usual, body, wait_header({"seconds": seconds}))


def _body(kind: str, message: str | None = None) -> Any:
    return _gateway_error(kind, message).body


def _usage_limit(values: Values) -> dict[str, Any]:
    """The refusal for a used-up window of the subscription: "5 hour", "weekly" or "monthly"."""
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
    # a body that is not JSON
    "plain_error": failure(
        418,
        lambda values: values["body"],
        lambda _: {"content-type": "text/plain"},
        status=418,
        body="I am a teapot",
    ),
}
