"""P1's failures as the client gets them."""

from __future__ import annotations

from typing import Any

from p1_events import failed
from samples import rows

from proxy.core.responses_events import responses_failure
from proxy.errors import UpstreamError, headers, messages_body
from proxy.providers.p1_codex.failures import client_error, upstream_error
from proxy.providers.upstream.responses_wire import is_foreign_reasoning


def error_of(event: dict[str, Any]) -> UpstreamError:
    failure = responses_failure(event)
    assert failure is not None
    return client_error(upstream_error(failure, "req_1"))


def error(status: int | None = None, **members: Any) -> dict[str, Any]:
    return {"type": "error", "status": status, "error": members}


FINAL, BUSY = {"x-should-retry": "false"}, {"Retry-After": "2"}


@rows(
    "event, status, kind, hints",
    [
        (failed(code="server_is_overloaded"), 529, "overloaded_error", BUSY),
        (error(503, code="server_is_overloaded"), 529, "overloaded_error", BUSY),
        (failed(type="server_error"), 503, "api_error", BUSY),
        (failed(), 503, "api_error", BUSY),
        *((error(status, message="x"), status, "api_error", BUSY) for status in (500, 502, 503)),
        (error(504, message="x"), 504, "timeout_error", BUSY),
        (error(503, message="x", retry_after=7), 503, "api_error", {"Retry-After": "7"}),
        (error(429, type="usage_not_included", message="x"), 403, "permission_error", FINAL),
        (error(500, message="usage limit"), 429, "rate_limit_error", FINAL),
        ({"type": "error", "error": {"status": 400, "message": "bad"}}, 400, "invalid_request_error", FINAL),
        ({"type": "error"}, 500, "api_error", {}),
        (error(), 500, "api_error", {}),
        (error(404, message="Model not found"), 404, "not_found_error", FINAL),
        (error(429, message="x", retry_after=30.2), 429, "rate_limit_error", {"Retry-After": "31"}),
    ],
)
def test_status_type_and_hints(event: dict[str, Any], status: int, kind: str, hints: dict[str, str]) -> None:
    """What the table of faults (`p1_faults`) does not have."""
    error = error_of(event)
    body = messages_body(error, "r")
    assert (error.status, body["error"]["type"], headers(error)) == (status, kind, hints)
    assert error.upstream_id == "req_1"


@rows(
    "status, code, message, expected",
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
