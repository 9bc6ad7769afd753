"""Rows of faults that several tables have: (fault of the sandbox, its members, what becomes of the request)."""

from __future__ import annotations

from typing import Any

from outcomes import Broken, Good, Outcome, Refused

Row = tuple[str, dict[str, Any], Outcome]

AGAIN = Good(2, waits=(1.5,))
CALL = Good(stop="tool_use", blocks=("text", "tool_use"))
CALLS = Good(stop="tool_use", blocks=("text", "tool_use", "tool_use"))
FINAL = {"x-should-retry": "false"}
BUSY = {"Retry-After": "2"}
OVERLOADED = Refused(529, "overloaded_error", 4, BUSY)
#: A failure that names no status, and usually passes.
FAILED = Refused(503, "api_error", 4, BUSY)


def rows(outcome: Outcome, faults: str, *members: dict[str, Any]) -> list[Row]:
    """Each of these faults with each of these members (none, if none are named) has this outcome."""
    return [(fault, one, outcome) for fault in faults.split() for one in members or ({},)]


#: What an answer can suffer on any wire and any transport.
ANSWER: list[Row] = [
    *rows(Good(2, waits=(1.0,)), "rate_limit", {}, {"status": 503}),
    *rows(Refused(429, "rate_limit_error", headers={"Retry-After": "86400"}), "huge_retry_after"),
    *rows(AGAIN, "overloaded end_before_output error_event"),
    *rows(OVERLOADED, "overloaded", {"times": 9}),
    *(
        row
        for status, kind in (
            *((status, "api_error") for status in (409, 425, 500, 502, 503, 522, 530)),
            *((status, "timeout_error") for status in (408, 504)),
        )
        for row in rows(Refused(status, kind, 4, BUSY), "server_error", {"status": status, "times": 9})
    ),
    *rows(Good(2, waits=(2.0,)), "overloaded", {"retry_after": 2}),
    *rows(AGAIN, "server_error", {}, {"status": 502}, {"status": 504}),
    *rows(Refused(403, "permission_error", headers=FINAL), "forbidden"),
    *rows(AGAIN, "cut_before_output", {}, {"reset": True}),
    *rows(Refused(502, "api_error", 4), "cut_before_output", {"times": 9}),
    *rows(Broken(), "cut_text", {}, {"reset": True}),
    *rows(Broken(open="tool_use"), "cut_arguments"),
    *rows(Broken(), "cut_frame"),
    *rows(Good(), "cut_after_terminal", {}, {"reset": True}),
    *rows(Good(), "silence_before_head silence_after_created silence_mid_text", {"seconds": 0.02}),
    *rows(CALL, "silence_mid_arguments", {"seconds": 0.02}),
    *rows(Good(), "keepalives unknown_events late_events tiny_writes"),
    *rows(CALL, "fixed_call_ids"),
]

#: What only HTTP has.
OVER_HTTP: list[Row] = [
    *rows(AGAIN, "html_error"),
    *rows(Refused(502, "api_error", 4, BUSY, "no explanation; try again later"), "html_error", {"times": 9}),
    *rows(Refused(502, "api_error"), "redirect"),
    *rows(Broken(), "invalid_utf8"),
    *rows(AGAIN, "invalid_utf8", {"after": "nothing"}),
    *rows(Good(), "comments done_sentinel crlf"),
    *rows(Good(), "comments_only", {"every_s": 0.005}),
]

#: An address that is not there, where the status is passed on.
NOT_FOUND: list[Row] = rows(Refused(404, "not_found_error", headers=FINAL), "html_error", {"status": 404})

#: JSON that is none.
MALFORMED: list[Row] = [
    *rows(Broken(), "malformed_json"),
    *rows(AGAIN, "malformed_json", {"after": "created"}, {"after": "nothing"}),
    *rows(Broken(open="tool_use"), "malformed_json", {"after": "call"}),
]

#: The events of the Responses wire.
RESPONSES: list[Row] = [
    *rows(AGAIN, "completed_with_error failed"),
    *rows(FAILED, "failed error_event", {"times": 9}),
    *rows(Broken(503), "failed error_event", {"after": "text"}),
    *rows(Broken(503, open="tool_use"), "failed error_event", {"after": "call"}),
    *rows(Refused(429, "rate_limit_error", headers=FINAL), "failed", {"code": "insufficient_quota"}),
    *rows(Good(stop="max_tokens"), "incomplete"),
    *rows(Good(stop="refusal"), "incomplete", {"reason": "content_filter"}),
    *rows(Broken(503), "incomplete", {"reason": "other"}),
    *rows(Good(stop="refusal"), "refusal"),
    *rows(Good(), "rate_limits bare_terminal no_deltas"),
    *rows(Good(), "no_deltas", {"whole": "item"}),
    *rows(CALL, "arguments_in_done arguments_in_item no_arguments"),
    *rows(CALL, "read_pages_empty read_huge_offset read_spaces"),
    *rows(CALLS, "interleaved"),
]
