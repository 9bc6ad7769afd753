"""What the simulated P1 demands of request headers, in the order in which it looks."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.sandbox.p1.tokens import TokenBook
from proxy.sandbox.wires.refusal import Refused, detail, invalid

LITE_HEADER = "x-openai-internal-codex-responses-lite"
LITE_MARKER = "ws_request_header_x_openai_internal_codex_responses_lite"

SOCKET_BETA = "responses_websockets"

#: Clients of the vendor. The smallest models are offered to these only.
VENDOR_CLIENTS = ("codex_cli_rs", "codex_exec")


def check_account(headers: Mapping[str, str], tokens: TokenBook) -> None:
    """The bearer must be live, the account header must name its account."""
    scheme, _, access = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not tokens.accepts(access):
        raise token_expired()
    account = headers.get("chatgpt-account-id")
    if account != tokens.account_id:
        problem = "Missing" if account is None else "Unknown"
        raise detail(f"{problem} ChatGPT account id", 403)


def token_expired() -> Refused:
    return Refused(
        401,
        {
            "error": {
                "message": "Provided authentication token is expired. Please try signing in again.",
                "type": None,
                "code": "token_expired",
                "param": None,
            },
            "status": 401,
        },
    )


def check_format(headers: Mapping[str, str], accept: str) -> None:
    """JSON in, `accept` out, and what every request must have."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise detail("Unsupported Media Type", 415)
    offered = {part.partition(";")[0].strip().lower() for part in headers.get("accept", "").split(",")}
    if accept not in offered:
        raise detail(f"Not Acceptable: {accept} expected", 406)
    _check_client(headers)
    if SOCKET_BETA in headers.get("openai-beta", ""):
        raise detail("openai-beta: responses_websockets is for the upgrade only")


def check_upgrade(headers: Mapping[str, str]) -> None:
    """The beta that sockets are, what every request must have, and nothing that belongs to a body."""
    if f"{SOCKET_BETA}=" not in headers.get("openai-beta", ""):
        raise detail("Missing required header: openai-beta: responses_websockets=<version>")
    _check_client(headers)
    for name in ("content-type", "content-encoding"):
        if name in headers:
            raise detail(f"Unexpected header: {name}")
    if "text/event-stream" in headers.get("accept", ""):
        raise detail("Not Acceptable: text/event-stream is for HTTP only", 406)
    is_lite(headers)


def _check_client(headers: Mapping[str, str]) -> None:
    """A named client, and the session header in its one good spelling."""
    if not headers.get("originator", "").strip():
        raise detail("Missing required header: originator")
    if "session_id" in headers:
        # intermediaries drop names with an underscore, and with them the cache affinity
        raise detail("Unknown header: session_id. Did you mean session-id?")


def is_lite(headers: Mapping[str, str]) -> bool:
    """Whether the request is on the lite lane."""
    value = headers.get(LITE_HEADER)
    if value not in (None, "true"):
        raise detail(f"Invalid value for header {LITE_HEADER}: {value}")
    return value is not None


def is_vendor_client(headers: Mapping[str, str]) -> bool:
    """Whether originator and user agent agree on being a client of the vendor."""
    originator = headers.get("originator", "")
    return originator in VENDOR_CLIENTS and headers.get("user-agent", "").partition("/")[0] == originator


def check_model_lane(model: str, *, exists: bool) -> None:
    if not exists:
        raise invalid(f"Model not found {model}", status=404, code="model_not_found", param="model")
