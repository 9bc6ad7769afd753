"""The header checks of the simulated P3, the wording of its refusals, and its failures as HTTP answers.

It requires a login, the kind of login, and a client that is new enough. Most refusals are flat; those of pictures have
the model service's form; failures have every known shape of body from the service or an edge before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from multidict import CIMultiDictProxy

from proxy.core.sse import dump_json
from proxy.sandbox.p3.issuer import GrokTokens
from proxy.sandbox.p3.state import P3Options
from proxy.sandbox.play.actions import FRONT_FAULTS, HttpFault, Values, failure, wait_header
from proxy.sandbox.wires.refusal import Refusal, Refused, invalid

INVALID_ARGUMENT = "Client specified an invalid argument"
BAD_IMAGE = "invalid_image"

#: Codes of faults that the service finds while it parses the body.
_UNREADABLE = ("missing_required_parameter", "invalid_type")


def flat(status: int, code: str | int, message: str, headers: Mapping[str, str] | None = None) -> Refused:
    """`{"code","error"}`"""
    return Refused(status, {"code": code, "error": message}, headers)


def error_only(status: int, message: str) -> Refused:
    """`{"error": text}`"""
    return Refused(status, {"error": message})


def argument(words: str) -> Refusal:
    """A refusal of a readable but unwanted argument."""
    return Refusal(words, "invalid_value")


def image_refused(words: str) -> Refused:
    return invalid(words, code=BAD_IMAGE)


def reworded(refused: Refused) -> Refused:
    """A refusal of the tables in this backend's words."""
    error: dict[str, Any] = refused.body["error"]
    if error["code"] == BAD_IMAGE:
        return refused
    if error["code"] in _UNREADABLE:
        return error_only(422, f"Failed to deserialize the JSON body into the target type: {error['message']}")
    return flat(400, INVALID_ARGUMENT, error["message"])


TOKEN_AUTH = "x-xai-token-auth"  # noqa: S105 - the name of a header
CLIENT = "x-grok-client-identifier"
VERSION = "x-grok-client-version"
CONVERSATION = "x-grok-conv-id"

_KIND = "xai-grok-cli"
_CLIENTS = ("grok-shell",)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:[-+][0-9A-Za-z.+-]+)?")

BAD_TOKEN = "The OAuth2 access token could not be validated. [WKE=unauthenticated:bad-credentials]"  # noqa: S105
DENIED = "permission-denied"


def check_caller(headers: CIMultiDictProxy[str], tokens: GrokTokens, options: P3Options) -> None:
    """Checks a request for an answer. Raises Refused."""
    access = check_bearer(headers, tokens)
    check_kind(headers)
    if headers.get(CLIENT) not in _CLIENTS:
        raise flat(403, DENIED, f"Unknown client: {headers.get(CLIENT) or '(none)'}")
    check_version(headers.get(VERSION), options.oldest_version)
    if options.gate:
        raise flat(403, DENIED, options.gate)
    if not tokens.permits(access):
        raise flat(403, DENIED, "Access to the chat endpoint is denied: the token lacks the scope grok-cli:access.")


def check_bearer(headers: Mapping[str, str], tokens: GrokTokens) -> str:
    """The access token. Raises Refused (401)."""
    scheme, _, access = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not tokens.accepts(access):
        raise flat(401, "unauthenticated:bad-credentials", BAD_TOKEN)
    return access


def check_kind(headers: CIMultiDictProxy[str]) -> None:
    """Requires the header, once, that marks the bearer as a login's. Raises Refused (401)."""
    kinds = headers.getall(TOKEN_AUTH, [])
    if kinds != [_KIND]:
        raise flat(401, "unauthenticated", f"Unknown auth kind: {', '.join(kinds) or '(none)'}")


def check_version(given: str | None, oldest: str) -> None:
    """Raises Refused (426) for a version older than the oldest served one."""
    if given is None or (found := _numbers(given)) is None or found < (_numbers(oldest) or ()):
        raise outdated(given or "(none)", oldest)


def outdated(given: str, oldest: str) -> Refused:
    return error_only(
        426,
        f"Your Grok CLI version {given} is outdated. Please update to version {oldest} or later via `grok update` or "
        "the installation documentation.",
    )


def check_format(headers: Mapping[str, str]) -> None:
    """Requires JSON in and a stream out. Raises Refused."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise error_only(415, "Expected request with `Content-Type: application/json`")
    accepted = [kind.partition(";")[0].strip() for kind in headers.get("accept", "*/*").split(",")]
    if not {"text/event-stream", "*/*"} & set(accepted):
        raise error_only(406, "Not Acceptable: the answer is text/event-stream")


def _numbers(version: str) -> tuple[int, ...] | None:
    found = _VERSION.fullmatch(version)
    return tuple(map(int, found.groups())) if found else None


BLOCKED = "personal-team-blocked:spending-limit"
NO_MORE_FREE = "subscription:free-usage-exhausted"


def _flat(code: str | int, message: str) -> Callable[[Values], dict[str, Any]]:
    """`{"code","error"}`; a step may replace message and code."""
    return lambda values: {"code": values.get("code", code), "error": values.get("message", message)}


def _messages_style(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


#: Shape of a body -> makes it from a text, and a code or kind if it has one.
SHAPES: dict[str, Callable[[str, Any], Any]] = {
    "flat": lambda text, code: {"code": code, "error": text},
    "error_only": lambda text, _code: {"error": text},
    "nested": lambda text, code: {
        "error": {"message": text, "type": "invalid_request_error", "code": code, "param": None}
    },
    "messages": lambda text, code: _messages_style(str(code), text),
    "doubled": lambda text, code: {"error": dump_json(_messages_style(str(code), text))},
    "string": lambda text, _code: text,
    "detail": lambda text, _code: {"detail": text},
    "message": lambda text, _code: {"message": text},
    "html": lambda text, _code: f"<!DOCTYPE html><html><head><title>{text}</title></head><body>{text}</body></html>",
    "empty": lambda _text, _code: "",
}


def _shaped(values: Values) -> Any:
    found = SHAPES[values["shape"]](values["message"], values["code"])
    # a text is sent unchanged, so JSON is written here
    return dump_json(found) if values["shape"] == "string" else found


def _shaped_headers(values: Values) -> dict[str, str]:
    kind = {} if values["shape"] in ("html", "empty") else {"content-type": "application/json"}
    return {**wait_header(values), **kind, **_retry_header(values)}


def _retry_header(values: Values) -> dict[str, str]:
    """`x-should-retry` from `retry`; no header for None."""
    retry = values.get("retry")
    return {} if retry is None else {"x-should-retry": str(retry).lower()}


def _waits(values: Values) -> dict[str, str]:
    return {**wait_header(values), **_retry_header(values)}


def _used_up(values: Values) -> dict[str, Any]:
    used, limit = values["used"], values["limit"]
    words = f"You have used all free usage for this period. tokens (actual/limit): {used}/{limit}"
    return {"code": NO_MORE_FREE, "error": words}


def _context(values: Values) -> dict[str, Any]:
    limit, tokens = values["limit"], values["tokens"]
    words = (
        f"This model's maximum prompt length is {limit} but the request contains {tokens} tokens. "
        "Please shorten the prompt."
    )
    return {"code": INVALID_ARGUMENT, "error": words}


def _outdated(values: Values) -> Any:
    return outdated(values["given"], values["oldest"]).body


_BUSY = "The service is currently unavailable"
_CREDITS = f"You ran out of credits. Add credits to go on. [WKE={BLOCKED}]"
_IMAGE = SHAPES["nested"]("Could not process image", BAD_IMAGE)

HTTP_FAULTS: dict[str, HttpFault] = {
    **FRONT_FAULTS,
    "rate_limit": failure(
        429, _flat("rate_limit_exceeded", "Too many requests."), _waits, seconds=1, status=429, retry=None
    ),
    "huge_retry_after": failure(429, _flat("rate_limit_exceeded", "Too many requests."), seconds=86_400),
    # of a sliding day, without its end
    "usage_limit": failure(429, _used_up, _waits, used=1_000_213, limit=1_000_000, retry=None, seconds=None),
    # the code as a number, with the machine-readable word inside of the text
    "spending_limit": failure(403, _flat(429, _CREDITS), _waits, status=403, retry=None, code=429),
    "payment_required": failure(402, _flat(BLOCKED, _CREDITS), status=402),
    "forbidden": failure(
        403, _flat(DENIED, ""), message="Access to the chat endpoint is denied. Please make sure you have access."
    ),
    "bad_credentials": failure(403, _flat("unauthenticated:bad-credentials", BAD_TOKEN), status=403),
    "bad_credentials_nested": failure(403, SHAPES["nested"](BAD_TOKEN, "unauthenticated:bad-credentials")),
    # only the text identifies it
    "bad_credentials_text": failure(403, {"error": "The OAuth2 access token could not be validated."}),
    "unauthorized": failure(401, _flat("unauthenticated:bad-credentials", BAD_TOKEN)),
    "overloaded": failure(
        529, _messages_style("overloaded_error", "Overloaded"), _waits, status=529, retry_after=None, retry=None
    ),
    "unavailable": failure(503, _flat(_BUSY, "Service temporarily unavailable."), _waits, retry_after=None, retry=None),
    "server_error": failure(500, _flat("internal", "Internal server error"), _waits, status=500, retry=None),
    "bad_image": failure(400, _IMAGE, status=400),
    "no_model": failure(400, _flat(INVALID_ARGUMENT, "The model grok-9 does not exist."), status=400),
    "outdated": failure(426, _outdated, given="0.2.93", oldest="0.3.0"),
    "bad_request": failure(400, _flat(INVALID_ARGUMENT, "The request is not understood."), status=400, message="no"),
    "too_large": failure(413, {"error": "Payload too large"}),
    "context_http": failure(400, _context, limit=500_000, tokens=600_000),
    # as if another family of models had made the history
    "unsealable": failure(400, _flat(INVALID_ARGUMENT, "Could not decode the encrypted_content of a reasoning item.")),
    "error_body": failure(
        500,
        _shaped,
        _shaped_headers,
        status=500,
        shape="flat",
        message="boom",
        code="internal",
        retry=None,
        seconds=None,
    ),
}
