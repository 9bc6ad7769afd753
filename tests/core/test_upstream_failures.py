"""What upstream events mean."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from samples import rows

from core.strategies import events, json_values
from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.messages import MessageStream
from proxy.core.reducer import AnswerPolicy
from proxy.core.responses_events import incomplete_reason, responses_failure, responses_usage, spent_window
from proxy.core.upstream_failures import Failure, failure_of, retry_after_of
from proxy.core.visible import Visible
from proxy.errors import KINDS
from proxy.providers.upstream.failures import Retry, decide, upstream_error


def failed(**error: Any) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"status": "failed", "error": error}}


def follows(event: dict[str, Any]) -> str:
    """What the program makes of an event: a failure, the end, output, or nothing yet."""
    if responses_failure(event) is not None:
        return "failure"
    reducer = ResponsesToMessages(MessageStream("m", "x"), AnswerPolicy({}))
    reducer.feed(event)
    return "success" if reducer.finished else "output" if reducer.produced else "waiting"


def is_repeated(failure: Failure) -> bool:
    """Whether the program sends the same request again."""
    return isinstance(decide(upstream_error("p1", failure), attempt=0, visible=Visible.NOTHING, chance=0.0), Retry)


def error(status: int | None = None, message: Any = None, **members: Any) -> dict[str, Any]:
    """An error event."""
    members |= {} if status is None else {"status": status}
    members |= {} if message is None else {"error": {"message": message}}
    return {"type": "error", **members}


def ended(kind: str, **response: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": response}


def cut(reason: str) -> dict[str, Any]:
    return {"incomplete_details": {"reason": reason}}


def item(value: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "item": value}


SPENT = {"rate_limits": {"limit_reached": True}, "credits": {"has_credits": False}}


@rows(
    "event, expected",
    [
        ({"type": "codex.rate_limits", **SPENT}, "waiting"),
        ({"type": "codex.rate_limits", "error": {"message": "x"}}, "waiting"),
        ({**ended("completed", status="completed", error=None), "error": None}, "success"),
        (ended("done"), "success"),
        (ended("incomplete", **cut("max_output_tokens")), "success"),
        (ended("completed", **cut("content_filter")), "success"),
        (ended("incomplete"), "failure"),
        (ended("completed", status="incomplete"), "failure"),
        ({"type": "response.output_text.delta", "delta": ""}, "waiting"),
        ({"type": "response.output_text.delta", "delta": "x"}, "output"),
        (item({"type": "function_call", "name": "f"}), "output"),
        (item({"type": "web_search_call"}), "output"),
        (item({"type": "message"}), "waiting"),
        (item({"type": ["function_call"]}), "waiting"),
        (item(None), "waiting"),
        ({"type": "some.future.event"}, "waiting"),
        ({"type": "keepalive"}, "waiting"),
        ({"type": ["error"]}, "waiting"),
        ({}, "waiting"),
        ({"error": {"message": "without a type"}}, "failure"),
        ({"type": "response.output_item.added", "error": ""}, "waiting"),
    ],
)
def test_what_follows_from_an_event(event: dict[str, Any], expected: str) -> None:
    assert follows(event) == expected


@rows(
    "word, kind, status",
    [
        ("rate_limit_exceeded", "rate_limit", 429),
        ("Throttling.RateQuota", "rate_limit", 429),
        ("quota_exceeded", "rate_limit", 429),
        ("model_overloaded", "overloaded", 529),
        ("capacity_exceeded", "overloaded", 529),
        ("AuthenticationError", "sign_in", 401),
        ("invalid_api_key", "sign_in", 401),
        ("payment_required", "billing", 402),
        ("insufficient_credits", "billing", 402),
        ("PermissionDeniedError", "permission", 403),
        ("NotFoundError", "not_found", 404),
        ("model_not_found", "not_found", 404),
        ("UnprocessableEntityError", "unprocessable", 422),
        ("BadRequestError", "invalid_request", 400),
        ("invalid_parameter_error", "invalid_request", 400),
        ("InvalidParameter", "invalid_request", 400),
        ("unsupported_value", "invalid_request", 400),
        ("image_too_large", "invalid_request", 400),
        ("image_file_not_found", "invalid_request", 400),
        ("content_policy_violation", "invalid_request", 400),
        ("data_inspection_failed", "invalid_request", 400),
        ("policy_blocked", "invalid_request", 400),
        ("context_length_exceeded", "context", 413),
        ("InternalServerError", "transient", 500),
        ("ServiceUnavailableError", "transient", 503),
        ("of_tomorrow", "upstream", 502),
    ],
)
@rows("member", ["code", "type"])
def test_in_a_stream_the_word_decides(word: str, kind: str, status: int, member: str) -> None:
    """No status comes with it, whatever the wire."""
    found = failure_of({"error": {member: word, "message": "m"}}, unknown=("upstream", 502))
    assert (found.kind, found.status) == (kind, status)


CONTEXT = "Your input exceeds the context window of this model."
LATE = {"status": 502, "code": "server_error", "message": "late"}


@rows(
    "event, kind, status, retryable",
    [
        ({**ended("completed", error=LATE), "error": None}, "transient", 502, True),
        ({"type": "error", "error": {"status": 400, "message": "bad request"}}, "invalid_request", 400, False),
        ({"type": "error", "code": "invalid_prompt", "message": "no"}, "invalid_request", 400, False),
        ({"type": "response.error", "code": "invalid_prompt", "message": "no"}, "invalid_request", 400, False),
        (error(), "upstream", 500, False),
        (error(message=" "), "upstream", 500, False),
        ({"type": "response.error"}, "upstream", 500, False),
        ({"type": "error", "error": {"type": "error"}}, "upstream", 500, False),
        ({"type": "error", "error": {"code": "odd"}}, "upstream", 500, False),
        (error(message="odd"), "upstream", 500, False),
        (error(418, error={}), "invalid_request", 418, False),
        (error(429, "too many tokens per minute"), "rate_limit", 429, True),
        (error(403, "context window"), "context", 413, False),
        (error(500, "Your input exceeds the context window"), "context", 413, False),
        (error(503, "prompt is too long: 3 tokens > 2"), "context", 413, False),
        (error(429, "over the maximum context"), "context", 413, False),
        (error(400, "too many tokens"), "context", 413, False),
        (error(None, "too many tokens"), "upstream", 500, False),
        (failed(message="too many tokens"), "transient", 503, True),
        (error(400, "bad property timeout"), "invalid_request", 400, False),
        (error(401, "login timed out"), "sign_in", 401, False),
        (error(405, "bad property timeout"), "invalid_request", 405, False),
        (error(405, "bad property 'rate limit'"), "invalid_request", 405, False),
        (error(425, "temporarily unavailable"), "transient", 425, True),
        (error(400, "bad tool 'recharge': no usage limit given"), "invalid_request", 400, False),
        (error(500, "usage limit reached"), "usage_limit", 500, False),
        (error(500, "please recharge the batteries"), "transient", 500, True),
        (error(403, "insufficient balance"), "usage_limit", 403, False),
        (error(402, "insufficient balance"), "billing", 402, False),
        (error(429, "You ran out of credits."), "billing", 402, False),
        (error(503, "You ran out of credits."), "transient", 503, True),
        (error(429, error={"type": "usage_limit_reached", "message": "spending limit"}), "usage_limit", 429, False),
        (error(error={"code": "cyber_policy", "message": "Could not process image"}), "invalid_request", 400, False),
        (error(403, "The OAuth2 access token could not be validated."), "sign_in", 401, False),
        (error(500, "The OAuth2 access token could not be validated."), "transient", 500, True),
        (error(504, "x"), "upstream_timeout", 504, True),
        (error(408, "x"), "upstream_timeout", 408, True),
        (error(429, error={"type": "usage_not_included", "message": "x"}), "permission", 403, False),
        (error(error={"type": "usage_not_included"}), "permission", 403, False),
        (error(error={"type": "context_length_exceeded", "message": "x"}), "context", 413, False),
        (error(error={"code": 429, "message": "x"}), "rate_limit", 429, True),
        (error(error={"code": "503", "message": "x"}), "transient", 503, True),
        (error(error={"code": 400, "type": "overloaded", "message": "x"}), "invalid_request", 400, False),
        (error(error={"code": 12, "message": "x"}), "upstream", 500, False),
        (error(error={"type": "authentication_error"}), "sign_in", 401, False),
        (error(error={"type": "billing_error"}), "billing", 402, False),
        (error(error={"type": "permission_error"}), "permission", 403, False),
        (error(error={"type": "not_found_error"}), "not_found", 404, False),
        (error(error={"type": "timeout_error"}), "upstream_timeout", 504, True),
        (error(error={"type": "invalid_request_error", "code": "rate_limit_exceeded"}), "rate_limit", 429, True),
        (error(error={"type": "invalid_request_error", "code": "slow_down"}), "overloaded", 529, True),
        (error(error={"type": "invalid_request_error", "code": "server_error"}), "transient", 503, True),
        (error(500, error={"type": "invalid_request_error"}), "transient", 500, True),
        (error(400, "over the context length"), "context", 413, False),
        (error(413, "too much"), "context", 413, False),
        (error(401, "who"), "sign_in", 401, False),
        (error(error="plain words"), "upstream", 500, False),
        (failed(code="context_length_exceeded", message="too long"), "context", 413, False),
        (failed(message=CONTEXT), "context", 413, False),
        (failed(type="overloaded_error", message="busy"), "overloaded", 529, True),
        (failed(code="server_is_overloaded"), "overloaded", 529, True),
        (failed(code="slow_down"), "overloaded", 529, True),
        (failed(code="websocket_connection_limit_reached"), "transient", 503, True),
        (failed(message="The model is at capacity"), "overloaded", 529, True),
        (failed(code="rate_limit_exceeded", message="Rate limit reached, try again in 1.3s"), "rate_limit", 429, True),
        (failed(code="insufficient_quota"), "usage_limit", 429, False),
        (failed(code="usage_not_included"), "permission", 403, False),
        (failed(code="cyber_policy"), "invalid_request", 400, False),
        (failed(code="bio_policy"), "invalid_request", 400, False),
        (failed(type="server_error"), "transient", 503, True),
        (failed(message="Socket connection was closed unexpectedly"), "transient", 503, True),
        (ended("failed"), "transient", 503, True),
        ({"type": "response.failed"}, "transient", 503, True),
        (ended("incomplete", **cut("other")), "transient", 503, True),
    ],
)
def test_failures(event: dict[str, Any], kind: str, status: int, retryable: bool) -> None:
    failure = responses_failure(event)
    assert failure is not None
    assert (failure.kind, failure.status, is_repeated(failure)) == (kind, status, retryable)
    assert failure.kind in KINDS
    assert failure.message


def test_a_context_failure_always_says_so() -> None:
    known = responses_failure(failed(code="context_length_exceeded", message="Input too long"))
    assert known is not None and known.message == "context window exceeded: Input too long"
    kept = responses_failure(failed(code="context_length_exceeded", message=CONTEXT))
    assert kept is not None and kept.message == CONTEXT


def test_a_usage_limit_names_its_time() -> None:
    error = {"type": "usage_limit_reached", "message": "The usage limit has been reached", "resets_in_seconds": 3600}
    failure = responses_failure({"type": "error", "status": 429, "error": error})
    assert failure is not None and not is_repeated(failure)
    assert (failure.kind, failure.status, failure.retry_after) == ("usage_limit", 429, 3600)


def test_the_end_of_a_spent_window_counts_and_not_the_next_try() -> None:
    error = {"type": "usage_limit_reached", "message": "spent", "resets_in_seconds": 3600}
    event = {"type": "error", "status": 429, "error": error, "headers": {"retry-after": "30"}}
    failure = responses_failure(event)
    assert failure is not None and failure.retry_after == 3600
    slow = responses_failure({**event, "error": {"message": "slow", "resets_in_seconds": 3600}})
    assert slow is not None and (slow.kind, slow.retry_after) == ("rate_limit", 30)


@rows(
    "event, error, expected",
    [
        ({}, {"retry_after": 2}, 2.0),
        ({}, {"retry_after": "2.5"}, 2.5),
        ({}, {"retry_after_seconds": 3}, 3.0),
        ({"retry_after_seconds": 4}, {}, 4.0),
        ({"headers": {"Retry-After": "5"}}, {}, 5.0),
        ({"headers": {"retry-after": 6}}, {}, 6.0),
        ({}, {"resets_in_seconds": 7}, 7.0),
        ({}, {"resets_at": 1010}, 10.0),
        ({}, {"resets_at": 990}, 0.0),
        ({}, {"message": "Please try again in 1.3s."}, 1.3),
        ({}, {"message": "try again in 28ms"}, 0.028),
        ({}, {"message": "Try again in 5 seconds"}, 5.0),
        ({}, {"retry_after": -1, "message": 3}, None),
        ({}, {"retry_after": "soon"}, None),
        ({}, {"retry_after": True}, None),
        ({}, {"retry_after": 10**400}, None),
        ({}, {"retry_after": "nan"}, None),
        ({"headers": []}, {}, None),
        ({}, {}, None),
    ],
)
def test_waits(event: dict[str, Any], error: dict[str, Any], expected: float | None) -> None:
    assert retry_after_of(event, error, now=1000) == expected


def limits(primary: Any = None, secondary: Any = None) -> dict[str, Any]:
    """A `codex.rate_limits` event with one limit reached; a window is (per cent used, seconds until its reset)."""
    windows = {"primary": primary, "secondary": secondary}
    members = ("used_percent", "reset_after_seconds")
    shown = {name: dict(zip(members, window, strict=True)) for name, window in windows.items() if window}
    return {"rate_limits": {"limit_reached": True, **shown}}


@rows(
    "event, expected",
    [
        ({"rate_limits": {"limit_reached": False}}, None),
        ({**limits(), "credits": {"has_credits": True}}, None),
        ({**limits(), "credits": {"unlimited": True}}, None),
        (limits(), 0.0),
        (limits((100, 9)), 9.0),
        (limits((20, 9), (100, 99)), 99.0),
        ({"rate_limits": []}, None),
        ({}, None),
    ],
)
def test_a_spent_window_is_a_hint(event: dict[str, Any], expected: float | None) -> None:
    assert spent_window(event) == expected


@given(events)
def test_any_event_is_survived(event: dict[str, Any]) -> None:
    failure = responses_failure(event, now=1.0)
    assert failure is None or (failure.kind in KINDS and failure.message and 400 <= failure.status <= 599)
    spent_window(event)


@given(json_values, json_values, json_values)
def test_any_shape_is_survived(kind: Any, response: Any, item: Any) -> None:
    event = {"type": kind, "response": response, "item": item, "error": response, "rate_limits": item, "headers": kind}
    responses_failure(event)
    incomplete_reason(event)
    incomplete_reason({**event, "type": "response.completed"})
    spent_window(event)
    responses_usage(response)


def tokens(total: Any, cached: int = 0, written: int = 0, output: Any = 0) -> dict[str, Any]:
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    return {"input_tokens": total, "input_tokens_details": details, "output_tokens": output}


@rows(
    "usage, expected",
    [
        (None, (0, 0, 0, 0)),
        (tokens(100, 20, output=5), (80, 20, 0, 5)),
        (tokens(1000, 800, output=50), (200, 800, 0, 50)),
        ({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 20}}, (0, 20, 0, 0)),
        (tokens(10, 2, 3), (5, 2, 3, 0)),
        (tokens(10, written=30), (0, 0, 10, 0)),
        ({"input_tokens": True, "output_tokens": -3, "input_tokens_details": []}, (0, 0, 0, 0)),
    ],
)
def test_usage_is_never_counted_twice(usage: Any, expected: tuple[int, ...]) -> None:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    found = responses_usage(usage)
    assert tuple(found[name] for name in names) == expected
    assert "server_tool_use" not in found
    assert responses_usage(usage, searches=2)["server_tool_use"] == {"web_search_requests": 2, "web_fetch_requests": 0}
