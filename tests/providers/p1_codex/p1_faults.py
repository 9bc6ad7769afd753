"""The faults that the sandbox knows for P1, and what becomes of each over either transport."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Answer, Live, ask, tool
from outcomes import Broken, Good, Outcome, Refused, is_broken, is_good

TOOLS = [tool("Bash"), tool("Read", "file_path")]

Row = tuple[str, dict[str, Any], Outcome]

AGAIN = Good(2, waits=(1.5,))
CALL = Good(stop="tool_use", blocks=("text", "tool_use"))
FINAL = {"x-should-retry": "false"}

#: What an answer can suffer on any transport.
SHARED: list[Row] = [
    ("rate_limit", {}, Good(2, waits=(1.0,))),
    ("rate_limit", {"status": 503}, Good(2, waits=(1.0,))),
    ("usage_limit", {}, Refused(429, "rate_limit_error", headers={"Retry-After": "3600", **FINAL})),
    ("huge_retry_after", {}, Refused(429, "rate_limit_error", headers={"Retry-After": "86400"})),
    ("overloaded", {}, AGAIN),
    ("overloaded", {"times": 9}, Refused(529, "overloaded_error", 4, {"Retry-After": "2"})),
    ("overloaded", {"retry_after": 2}, Good(2, waits=(2.0,))),
    ("server_error", {}, AGAIN),
    ("server_error", {"times": 9}, Refused(529, "overloaded_error", 4, {"Retry-After": "2"})),
    ("server_error", {"status": 502}, AGAIN),
    ("server_error", {"status": 504}, AGAIN),
    ("unauthorized", {}, Good(2)),
    ("unauthorized", {"times": 9}, Refused(401, "authentication_error", 2, FINAL)),
    ("forbidden", {}, Refused(403, "permission_error", headers=FINAL)),
    ("context_http", {}, Refused(413, "request_too_large")),
    ("unsealable", {}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("cut_before_output", {}, AGAIN),
    ("cut_before_output", {"reset": True}, AGAIN),
    ("cut_before_output", {"times": 9}, Refused(502, "api_error", 4)),
    ("cut_text", {}, Broken()),
    ("cut_text", {"reset": True}, Broken()),
    ("cut_thinking", {}, Good(2, blocks=("thinking", "text"), waits=(1.5,))),
    ("cut_thinking", {"times": 2}, Broken(attempts=2)),
    ("cut_arguments", {}, Broken(open="tool_use")),
    ("cut_frame", {}, Broken()),
    ("cut_after_terminal", {}, Good()),
    ("cut_after_terminal", {"reset": True}, Good()),
    ("end_without_terminal", {}, Broken()),
    ("end_before_output", {}, AGAIN),
    ("silence_before_head", {"seconds": 0.02}, Good()),
    ("silence_after_created", {"seconds": 0.02}, Good()),
    ("silence_mid_text", {"seconds": 0.02}, Good()),
    ("silence_mid_arguments", {"seconds": 0.02}, CALL),
    ("keepalives", {}, Good()),
    ("unknown_events", {}, Good()),
    ("late_events", {}, Good()),
    ("empty", {}, AGAIN),
    ("empty", {"message": True}, AGAIN),
    ("empty", {"times": 9}, Refused(529, "overloaded_error", 3, {"Retry-After": "2"})),
    ("completed_with_error", {}, AGAIN),
    ("failed", {}, AGAIN),
    ("failed", {"times": 9}, Refused(529, "overloaded_error", 4, {"Retry-After": "2"})),
    ("failed", {"after": "text"}, Broken(529, "overloaded_error")),
    ("failed", {"after": "call"}, Broken(529, "overloaded_error", open="tool_use")),
    ("failed", {"after": "thinking"}, Good(2, blocks=("thinking", "text"), waits=(1.5,))),
    ("failed", {"code": "context_length_exceeded"}, Refused(413, "request_too_large")),
    ("failed", {"code": "insufficient_quota"}, Refused(429, "rate_limit_error", headers=FINAL)),
    ("failed", {"code": "usage_not_included"}, Refused(403, "permission_error", headers=FINAL)),
    ("failed", {"code": "usage_limit_reached"}, Refused(429, "rate_limit_error", 1, {"Retry-After": "3600", **FINAL})),
    ("failed", {"code": "cyber_policy"}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("failed", {"code": "invalid_prompt"}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("failed", {"code": "bio_policy"}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("failed", {"code": "server_is_overloaded"}, AGAIN),
    ("failed", {"code": "slow_down"}, AGAIN),
    ("failed", {"code": "rate_limit_exceeded"}, Good(2, waits=(1.3,))),
    ("failed", {"code": "overloaded_error"}, AGAIN),
    ("failed", {"code": "unexplained"}, AGAIN),
    ("error_event", {}, AGAIN),
    ("error_event", {"flat": True}, AGAIN),
    ("error_event", {"code": "bad", "status": 400}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("error_event", {"code": "context_length_exceeded", "status": 400}, Refused(413, "request_too_large")),
    ("error_event", {"code": "slow_down", "headers": {"Retry-After": "3"}}, Good(2, waits=(3.0,))),
    ("error_event", {"after": "text"}, Broken(529, "overloaded_error")),
    ("incomplete", {}, Good(stop="max_tokens")),
    ("incomplete", {"event": "response.completed"}, Good(stop="max_tokens")),
    ("incomplete", {"reason": "content_filter"}, Good(stop="refusal")),
    ("incomplete", {"reason": "other"}, Broken(529, "overloaded_error")),
    ("incomplete", {"reason": "other", "after": "created"}, AGAIN),
    ("incomplete", {"reason": None, "after": "created"}, AGAIN),
    ("refusal", {}, Good(stop="refusal")),
    ("rate_limits", {}, Good()),
    ("rate_limits", {"reached": False}, Good()),
    ("rate_limits", {"then_end": True}, Refused(429, "rate_limit_error", headers={"Retry-After": "600", **FINAL})),
    ("tiny_writes", {}, Good()),
    ("bare_terminal", {}, Good()),
    ("arguments_in_done", {}, CALL),
    ("arguments_in_item", {}, CALL),
    ("no_arguments", {}, CALL),
    ("no_deltas", {}, Good()),
    ("no_deltas", {"whole": "item"}, Good()),
    ("read_pages_empty", {}, CALL),
    ("read_huge_offset", {}, CALL),
    ("read_spaces", {}, CALL),
    ("read_spaces", {"closed": False}, CALL),
    ("read_spaces", {"stall": True}, CALL),
    ("interleaved", {}, Good(stop="tool_use", blocks=("text", "tool_use", "tool_use"))),
    ("sealed_only_added", {}, Good(blocks=("thinking", "text"))),
    ("sealed_only_done", {}, Good(blocks=("thinking", "text"))),
    ("sealed_differs", {}, Good(blocks=("thinking", "text"))),
    ("fixed_call_ids", {}, CALL),
]

#: What only HTTP has, or takes differently.
HTTP: list[Row] = [
    ("html_error", {}, AGAIN),
    ("html_error", {"times": 9}, Refused(529, "overloaded_error", 4, {"Retry-After": "2"})),
    ("html_error", {"status": 404}, Refused(404, "not_found_error", headers=FINAL)),
    ("redirect", {}, Refused(502, "api_error")),
    ("malformed_json", {}, Broken()),
    ("malformed_json", {"after": "created"}, AGAIN),
    ("malformed_json", {"after": "nothing"}, AGAIN),
    ("malformed_json", {"after": "call"}, Broken(open="tool_use")),
    ("invalid_utf8", {}, Broken()),
    ("invalid_utf8", {"after": "nothing"}, AGAIN),
    ("huge_frame", {}, Broken()),
    ("huge_frame", {"after": "nothing"}, Refused(502, "api_error")),
    ("comments", {}, Good()),
    ("comments_only", {"every_s": 0.005}, Good()),
    ("done_sentinel", {}, Good()),
    ("crlf", {}, Good()),
]


def case_name(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return "-".join(f"{key}={value[key]}" for key in value) or "plain" if isinstance(value, dict) else "then"


def asked_for(fault: str, params: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    """A request in whose answer there is room for the fault."""
    effort = {"output_config": {"effort": "high"}} if "thinking" in f"{fault} {params}" else {}
    return ask(tools=TOOLS, stream=stream, **effort)


def comes_out(live: Live, answer: Answer, outcome: Outcome, *, stream: bool) -> None:
    """What the client got, and what it took."""
    assert not live.notes.all("internal_error")
    if isinstance(outcome, Good):
        is_good(answer, outcome, stream)
        # upgrades keep their distance from a moment, so their waits are a little shorter
        assert live.sleeps == pytest.approx(outcome.waits, abs=0.1)
    elif isinstance(outcome, Refused):
        assert (answer.status, answer.error["type"]) == (outcome.status, outcome.type)
        assert outcome.words in answer.error["message"]
        hints = {name: answer.headers[name] for name in ("Retry-After", "x-should-retry") if name in answer.headers}
        assert hints == outcome.headers or (not outcome.headers and "x-should-retry" not in hints)
    else:
        assert isinstance(outcome, Broken)
        is_broken(answer, outcome, stream)
        assert outcome.words in answer.raw.decode()
