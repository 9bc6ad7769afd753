"""The checks of request headers in the simulated P1, in its order."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.sandbox.p1.issuer import TokenBook
from proxy.sandbox.upstream import read_json
from proxy.sandbox.wires.field_checks import (
    Checked,
    Fault,
    Field,
    Table,
    check,
    fits,
    matches,
    one_of,
    optional,
    required,
)
from proxy.sandbox.wires.refusal import Refused, bare, detail

LITE_HEADER = "x-openai-internal-codex-responses-lite"
LITE_MARKER = "ws_request_header_x_openai_internal_codex_responses_lite"

SOCKET_BETA = "responses_websockets"

#: Clients of the vendor. The smallest models are offered to these only.
VENDOR_CLIENTS = ("codex_cli_rs", "codex_exec")


def check_account(headers: Mapping[str, str], tokens: TokenBook) -> None:
    """Requires a live bearer, and the account header of its account."""
    scheme, _, access = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not tokens.accepts(access):
        raise token_expired()
    account = headers.get("chatgpt-account-id")
    if account != tokens.account_id:
        problem = "Missing" if account is None else "Unknown"
        raise detail(f"{problem} ChatGPT account id", 403)


def token_expired() -> Refused:
    words = "Provided authentication token is expired. Please try signing in again."
    error = {"message": words, "type": None, "code": "token_expired", "param": None}
    return Refused(401, {"error": error, "status": 401})


def is_lite(headers: Mapping[str, str]) -> bool:
    """Whether the request is on the lite lane."""
    check(headers, (_LITE,))
    return LITE_HEADER in headers


def is_vendor_client(headers: Mapping[str, str]) -> bool:
    """Whether originator and user agent both name one client of the vendor."""
    originator = headers.get("originator", "")
    return originator in VENDOR_CLIENTS and headers.get("user-agent", "").partition("/")[0] == originator


def _kind(value: str | None) -> str:
    return (value or "").partition(";")[0].strip().lower()


def _not_accepted(value: str | None, checked: Checked) -> str | None:
    return None if checked.rules in map(_kind, (value or "").split(",")) else str(checked.rules)


_NOT_JSON = bare("Unsupported Media Type", 415)
_UPGRADE_ONLY = bare("openai-beta: responses_websockets is for the upgrade only")
_NO_BETA = bare("Missing required header: openai-beta: responses_websockets=<version>")
_HTTP_ONLY = bare("Not Acceptable: text/event-stream is for HTTP only", 406)
_NEVER = fits(lambda _value: False)
_LITE = optional(LITE_HEADER, one_of("true"), bare(f"Invalid value for header {LITE_HEADER}: {{value}}"))


def _is_object(text: str) -> bool:
    return isinstance(read_json(text.encode()), dict)


def _well_formed(name: str, fault: Fault) -> Field:
    return optional(name, fault, bare(f"Invalid value for header {name}: {{value}}"))


#: A named client, the session header in its correct spelling, and the vendor client's optional headers about its turn,
#: which must make sense. A turn state must come from an answer.
_CLIENT: Table = (
    required("originator", fits(lambda value: (value or "").strip()), bare("Missing required header: originator")),
    # intermediaries drop names with an underscore, and with them the cache affinity
    optional("session_id", _NEVER, bare("Unknown header: session_id. Did you mean session-id?")),
    _well_formed("thread-id", fits(str.strip)),
    _well_formed("x-codex-turn-metadata", fits(_is_object)),
    _well_formed("x-codex-routing-hint", matches(r"model=[a-z0-9.-]+")),
    _well_formed("x-codex-turn-state", matches(r"turn_[0-9a-f]+")),
)

#: The requested kind of answer must match the rules, whatever the body is.
CLIENT: Table = (
    required("accept", _not_accepted, bare("Not Acceptable: {expected} expected", 406)),
    *_CLIENT,
    optional("openai-beta", fits(lambda value: SOCKET_BETA not in value), _UPGRADE_ONLY),
)

#: The body must be JSON.
FORMAT: Table = (
    required("content-type", fits(lambda value: _kind(value) == "application/json"), _NOT_JSON),
    *CLIENT,
)

#: The beta for sockets, the headers of every request, and none that belongs to a body.
UPGRADE_HEADERS: Table = (
    required("openai-beta", fits(lambda value: f"{SOCKET_BETA}=" in (value or "")), _NO_BETA),
    *_CLIENT,
    *(optional(name, _NEVER, bare(f"Unexpected header: {name}")) for name in ("content-type", "content-encoding")),
    optional("accept", fits(lambda value: "text/event-stream" not in value), _HTTP_ONLY),
    _LITE,
)
