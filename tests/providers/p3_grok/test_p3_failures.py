"""P3's failures as the client gets them: status, type word, hints, words, and whether the program asks again."""

from __future__ import annotations

import json
from typing import Any

from core.strategies import json_values
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.responses_events import responses_failure
from proxy.core.visible import Visible
from proxy.errors import UpstreamError, headers, messages_body, messages_event, openai_body, openai_status
from proxy.providers.p3_grok.provider import MAX_WORDS, PROFILE, client_error, upstream_error
from proxy.providers.upstream.failures import Retry, decide
from proxy.providers.upstream.transport import refusal_of

FINAL, BUSY = {"x-should-retry": "false"}, {"Retry-After": "2"}
CREDITS, ACCESS, IMAGE = "credits and plan", "no access", "PROXY_P3_TOOL_IMAGE=omit"
SIGN_IN = "model-proxy auth login p3"

INVALID, UNSIGNED = "invalid_request_error", "authentication_error"
NO_CREDITS = "You ran out of credits."
TOKEN = "The OAuth2 access token could not be validated."
BAD_IMAGE = "Could not process image"


def answered(status: int, body: Any, **sent: str) -> UpstreamError:
    """The error behind an answer, before the client's hints."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = {name.replace("_", "-"): value for name, value in sent.items()}
    return refusal_of(PROFILE, status, told, raw, now=0.0)


def is_repeated(error: UpstreamError) -> bool:
    return isinstance(decide(error, attempt=0, visible=Visible.NOTHING, chance=0.0), Retry)


def flat(code: Any, error: str) -> dict[str, Any]:
    return {"code": code, "error": error}


def nested(message: str, **members: Any) -> dict[str, Any]:
    return {"error": {"message": message, **members}}


#: (status, body, our status, its type word, hints, whether it is asked again, words)
ANSWERS: list[tuple[int, Any, int, str, dict[str, str], bool, tuple[str, ...]]] = [
    (403, flat("permission-denied", "Access denied."), 403, "permission_error", FINAL, False, ("denied", ACCESS)),
    (403, flat("permission-denied", "spending limit"), 403, "permission_error", FINAL, False, (ACCESS,)),
    (403, flat(None, "no"), 403, "permission_error", FINAL, False, ("no (", ACCESS)),
    *(
        (status, body, 402, "billing_error", FINAL, False, (NO_CREDITS, CREDITS))
        for status, body in (
            (403, flat("personal-team-blocked:spending-limit", NO_CREDITS)),
            (402, flat("personal-team-blocked:spending-limit", NO_CREDITS)),
            (429, flat(429, f"{NO_CREDITS} [WKE=personal-team-blocked:spending-limit]")),
            (429, flat(429, NO_CREDITS)),
            (402, {"error": NO_CREDITS}),
        )
    ),
    (401, {"error": "no"}, 401, UNSIGNED, FINAL, False, (SIGN_IN,)),
    *(
        (403, body, 401, UNSIGNED, FINAL, False, (SIGN_IN,))
        for body in (
            flat("unauthenticated:bad-credentials", TOKEN),
            nested("no", code="unauthenticated:bad-credentials"),
            {"error": TOKEN},
            flat(403, "no [WKE=unauthenticated:bad-credentials]"),
        )
    ),
    (
        429,
        flat("subscription:free-usage-exhausted", "tokens (actual/limit): 7/5"),
        429,
        "rate_limit_error",
        FINAL,
        False,
        ("7/5", "24 hours"),
    ),
    (429, flat("Some resource has been exhausted", "slow"), 429, "rate_limit_error", {}, True, ("exhausted: slow",)),
    *(
        (status, body, 400, INVALID, FINAL, False, (IMAGE,))
        for status in (400, 500)
        for body in (nested("bad", code="invalid_image"), {"error": f"{BAD_IMAGE}."}, {"error": json.dumps(BAD_IMAGE)})
    ),
    (
        400,
        flat("Client specified an invalid argument", "The model x does not exist"),
        400,
        INVALID,
        FINAL,
        False,
        ("argument: The model x does not exist", "region"),
    ),
    (404, {"error": "The model x does not exist"}, 400, INVALID, FINAL, False, ("x does", "region")),
    (404, b"", 400, INVALID, FINAL, False, ("status 404",)),
    (426, {"error": "version (none) is outdated"}, 400, INVALID, FINAL, False, ("(none)", "PROXY_P3_CLIENT_VERSION")),
    (422, {"error": "Failed to deserialize"}, 422, INVALID, FINAL, False, ("Failed",)),
    *((status, b"<html>no</html>", status, INVALID, FINAL, False, (str(status),)) for status in (405, 415, 451)),
    *(
        (status, body, 413, "request_too_large", {}, False, ("prompt is too long", "context window"))
        for status, body in (
            (413, {"error": "large"}),
            (400, {"error": "This is too long for this model."}),
            (400, flat("Client specified an invalid argument", "the maximum prompt length is 5")),
            (400, nested("x", code="context_length_exceeded")),
            (422, {"error": "error: context_length_exceeded"}),
            (500, {"error": "This model's maximum context length is 5"}),
        )
    ),
    *((status, b"<html>bad</html>", status, "api_error", BUSY, True, ("later",)) for status in (425, 500, 502, 503)),
    (408, b"", 408, "timeout_error", FINAL, False, ("status 408",)),
    (409, flat("Conflict", "in progress"), 409, "api_error", FINAL, False, ("in progress",)),
    (504, b"", 504, "timeout_error", BUSY, True, ("later",)),
    *((status, b"<html>", status, "api_error", BUSY, True, ("later",)) for status in (520, 522, 524, 525, 530)),
    (503, flat("It is down", "Service temporarily unavailable."), 503, "api_error", BUSY, True, ("down: Service",)),
    (
        529,
        {"error": json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}})},
        529,
        "overloaded_error",
        BUSY,
        True,
        ("Busy",),
    ),
    (500, "boom", 500, "api_error", BUSY, True, ("boom",)),
    *((500, {name: "boom"}, 500, "api_error", BUSY, True, ("boom",)) for name in ("detail", "message")),
]


@rows("status, body, expected, word, hints, again, words", ANSWERS)
def test_an_answer_with_an_error_status(
    status: int, body: Any, expected: int, word: str, hints: dict[str, str], again: bool, words: tuple[str, ...]
) -> None:
    reported = answered(status, body)
    error = client_error(reported)
    shown = messages_body(error, "r")["error"]
    assert (error.status, shown["type"], headers(error), is_repeated(reported)) == (expected, word, hints, again)
    assert all(part in shown["message"] for part in words), shown["message"]
    assert "<" not in shown["message"] and "WKE" not in shown["message"] and shown["provider"] == "p3"


@rows("status", [401, 403, 429, 500, 503])
def test_an_upstream_that_says_so_is_not_asked_again(status: int) -> None:
    error = answered(status, {"error": "no"}, x_should_retry="false")
    assert not is_repeated(error)
    assert headers(client_error(error)) == FINAL


def test_a_wait_is_handed_on_when_it_is_long() -> None:
    short, long = (answered(429, {"error": "slow"}, retry_after=wait) for wait in ("7", "31.2"))
    assert decide(short, attempt=0, visible=Visible.NOTHING, chance=0.0) == Retry(7.0)
    assert not is_repeated(long) and headers(client_error(long)) == {"Retry-After": "32"}


FAILED = "response.failed"

#: (event, our status, its type word, whether it is asked again)
EVENTS: list[tuple[dict[str, Any], int, str, bool]] = [
    *(
        ({"type": "error", name: 503, "code": "x", "message": "m"}, 503, "api_error", True)
        for name in ("status", "status_code", "http_status")
    ),
    ({"type": "error", "code": "rate_limit_exceeded", "message": "m"}, 429, "rate_limit_error", True),
    ({"type": "error", "status": 503, "code": "too_many_requests", "message": "m"}, 503, "api_error", True),
    ({"type": "error", "error": {"type": "authentication_error", "message": "m"}}, 401, UNSIGNED, False),
    ({"type": "error", "code": "unauthenticated:bad-credentials", "message": "m"}, 401, UNSIGNED, False),
    ({"type": "error", "code": "permission-denied", "message": "m"}, 403, "permission_error", False),
    ({"type": "error", "code": "not-found", "message": "m"}, 400, INVALID, False),
    ({"type": "error", "error": {"type": "invalid_request", "message": "m"}}, 400, INVALID, False),
    ({"type": "error", "code": "invalid-argument", "message": "m"}, 400, INVALID, False),
    ({"type": "error", "code": "context_length_exceeded", "message": "m"}, 413, "request_too_large", False),
    ({"type": FAILED, "response": {"error": {"code": "server_error", "message": "m"}}}, 503, "api_error", True),
    (flat("subscription:free-usage-exhausted", "m"), 429, "rate_limit_error", False),
    (flat("personal-team-blocked:spending-limit", "m"), 402, "billing_error", False),
    ({"error": {"message": "m", "code": 503}}, 503, "api_error", True),
]


@rows("event, status, word, again", EVENTS)
def test_a_failure_inside_a_stream(event: dict[str, Any], status: int, word: str, again: bool) -> None:
    failure = responses_failure(event)
    assert failure is not None
    reported = upstream_error(failure)
    error = client_error(reported)
    assert (error.status, error.row.messages, is_repeated(reported)) == (status, word, again)


def test_an_event_names_a_wait() -> None:
    failure = responses_failure({"type": "error", "code": "rate_limit_exceeded", "message": "m", "retry_after": 9})
    assert failure is not None and failure.retry_after == 9


def test_an_overflow_is_one_on_every_route() -> None:
    error = client_error(answered(400, {"error": "context_length_exceeded"}))
    assert messages_event(error)["error"]["message"] == error.message
    assert error.message.startswith("prompt is too long: context window")
    assert (openai_status(error), openai_body(error)["error"]["code"]) == (400, "context_length_exceeded")


def test_words_are_cut_and_hold_no_credentials() -> None:
    long = answered(422, {"error": "x" * 9999}).message
    assert long == "x" * (MAX_WORDS - 1) + "…"
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyIn0.c2ln"
    shown = answered(500, {"error": f"Bearer {token} at https://u:pw@h/x by xai-{'k' * 20}, {token}"}).message
    bearer, jwt, key = "[redacted len=45]", "[redacted token len=45]", "[redacted token len=24]"
    assert shown == f"Bearer {bearer} at https://[redacted]@h/x by {key}, {jwt}"


@given(st.sampled_from([400, 401, 402, 403, 404, 413, 426, 429, 500, 503, 520, 529]), json_values, json_values)
def test_any_body_is_survived(status: int, code: Any, words: Any) -> None:
    packed = json.dumps({"code": words, "error": code})
    for body in ({"code": code, "error": words}, {"error": {"code": code, "message": words}}, {"error": packed}, words):
        error = client_error(answered(status, body))
        assert 400 <= error.status <= 599 and error.message and len(error.message) < MAX_WORDS + 400
        openai_body(error)
