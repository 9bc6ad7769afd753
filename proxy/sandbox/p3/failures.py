"""The failures of P3 as HTTP answers, in every shape of body that the service or an edge before it is known for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.p3.headers import BAD_TOKEN, DENIED, outdated
from proxy.sandbox.p3.refusals import BAD_IMAGE, INVALID_ARGUMENT
from proxy.sandbox.play.http_faults import FRONT_FAULTS, HttpFault, Values, failure, wait_header

BLOCKED = "personal-team-blocked:spending-limit"
NO_MORE_FREE = "subscription:free-usage-exhausted"


def _flat(code: str | int, message: str) -> Callable[[Values], dict[str, Any]]:
    """`{"code","error"}`; a step may have other words and another code."""
    return lambda values: {"code": values.get("code", code), "error": values.get("message", message)}


def _messages_style(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


#: Shape of a body -> what a text becomes in it, with a code or kind where it has one.
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
    # a text is sent as it is, so one that is to arrive as JSON is written here
    return dump_json(found) if values["shape"] == "string" else found


def _shaped_headers(values: Values) -> dict[str, str]:
    kind = {} if values["shape"] in ("html", "empty") else {"content-type": "application/json"}
    return {**wait_header(values), **kind, **_retry_header(values)}


def _retry_header(values: Values) -> dict[str, str]:
    """`x-should-retry`, of `retry`; none for None."""
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
    # of a day that slides; when it ends is not told
    "usage_limit": failure(429, _used_up, _waits, used=1_000_213, limit=1_000_000, retry=None, seconds=None),
    # the same as a number, with the machine's word inside of the text
    "spending_limit": failure(403, _flat(429, _CREDITS), _waits, status=403, retry=None, code=429),
    "payment_required": failure(402, _flat(BLOCKED, _CREDITS), status=402),
    "forbidden": failure(
        403, _flat(DENIED, ""), message="Access to the chat endpoint is denied. Please make sure you have access."
    ),
    "bad_credentials": failure(403, _flat("unauthenticated:bad-credentials", BAD_TOKEN), status=403),
    "bad_credentials_nested": failure(403, SHAPES["nested"](BAD_TOKEN, "unauthenticated:bad-credentials")),
    # only the text tells
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
    # as if the history came from another family of models
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
