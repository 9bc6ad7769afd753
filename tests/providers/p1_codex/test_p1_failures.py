"""P1's failures as the client gets them."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.core.responses_events import responses_failure
from proxy.errors import UpstreamError, headers, messages_body, messages_event
from proxy.providers.p1_codex.failures import client_error, upstream_error
from proxy.providers.upstream.failures import duration
from proxy.providers.upstream.responses_wire import is_foreign_reasoning


def error_of(event: dict[str, Any]) -> UpstreamError:
    failure = responses_failure(event)
    assert failure is not None
    return client_error(upstream_error(failure, "req_1"))


def failed(**error: Any) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"status": "failed", "error": error}}


CONTEXT = "Your input exceeds the context window of this model."


@pytest.mark.parametrize(
    ("event", "status", "kind", "hints"),
    [
        (failed(code="context_length_exceeded", message=CONTEXT), 413, "request_too_large", {}),
        (failed(code="cyber_policy"), 400, "invalid_request_error", {"x-should-retry": "false"}),
        (failed(code="insufficient_quota"), 429, "rate_limit_error", {"x-should-retry": "false"}),
        (failed(code="usage_not_included"), 403, "permission_error", {"x-should-retry": "false"}),
        (failed(code="server_is_overloaded"), 529, "overloaded_error", {"Retry-After": "2"}),
        (failed(type="server_error"), 529, "overloaded_error", {"Retry-After": "2"}),
        ({"type": "error", "status": 502, "error": {"message": "x"}}, 529, "overloaded_error", {"Retry-After": "2"}),
        ({"type": "response.failed", "response": {}}, 529, "overloaded_error", {"Retry-After": "2"}),
        (
            {"type": "error", "error": {"status": 400, "message": "bad"}},
            400,
            "invalid_request_error",
            {"x-should-retry": "false"},
        ),
        (
            {"type": "error", "status": 404, "error": {"message": "Model not found"}},
            404,
            "not_found_error",
            {"x-should-retry": "false"},
        ),
        (
            {"type": "error", "status": 429, "error": {"message": "x", "retry_after": 30.2}},
            429,
            "rate_limit_error",
            {"Retry-After": "31"},
        ),
    ],
)
def test_status_type_and_hints(event: dict[str, Any], status: int, kind: str, hints: dict[str, str]) -> None:
    error = error_of(event)
    body = messages_body(error, "r")
    assert (error.status, body["error"]["type"], headers(error)) == (status, kind, hints)
    assert error.upstream_id == "req_1"


def test_a_context_error_has_the_words_that_make_the_client_compact() -> None:
    error = error_of(
        {"type": "error", "status": 400, "error": {"code": "context_length_exceeded", "message": "Input too long"}}
    )
    assert error.status == 413
    assert messages_body(error, "r")["error"]["message"] == "context window exceeded: Input too long"
    inside = messages_event(error)["error"]
    assert (inside["type"], inside["message"][:19]) == ("invalid_request_error", "prompt is too long:")


def test_a_spent_allowance_names_the_time() -> None:
    error = error_of(
        {
            "type": "error",
            "status": 429,
            "error": {"type": "usage_limit_reached", "message": "Reached", "resets_in_seconds": 7200},
        }
    )
    assert error.message == "Reached (p1 is available again in 2 h 0 min)"
    assert headers(error) == {"Retry-After": "7200", "x-should-retry": "false"}


def test_a_refused_sign_in_names_the_command() -> None:
    error = error_of({"type": "error", "status": 401, "error": {"message": "expired"}})
    assert "model-proxy auth login p1" in error.message
    assert headers(error) == {"x-should-retry": "false"}


@pytest.mark.parametrize(
    ("status", "code", "message", "expected"),
    [
        (400, "invalid_encrypted_content", "x", True),
        (400, "thinking_signature_invalid", "x", True),
        (400, None, "The encrypted content for item rs_1 could not be verified.", True),
        (400, None, "bad request", False),
        (500, "invalid_encrypted_content", "x", False),
    ],
)
def test_reasoning_of_another_account_is_recognised(
    status: int, code: str | None, message: str, expected: bool
) -> None:
    assert is_foreign_reasoning(UpstreamError(message, status=status, code=code)) is expected


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 min"),
        (1, "1 min"),
        (60, "1 min"),
        (61, "2 min"),
        (3600, "1 h 0 min"),
        (86_400 + 7200, "1 d 2 h"),
        (59.9, "1 min"),
    ],
)
def test_waits_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
