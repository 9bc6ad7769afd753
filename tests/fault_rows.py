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

#: What an answer can suffer on any wire and any transport.
ANSWER: list[Row] = [
    ("rate_limit", {}, Good(2, waits=(1.0,))),
    ("rate_limit", {"status": 503}, Good(2, waits=(1.0,))),
    ("huge_retry_after", {}, Refused(429, "rate_limit_error", headers={"Retry-After": "86400"})),
    ("overloaded", {}, AGAIN),
    ("overloaded", {"times": 9}, Refused(529, "overloaded_error", 4, BUSY)),
    ("overloaded", {"retry_after": 2}, Good(2, waits=(2.0,))),
    ("server_error", {}, AGAIN),
    ("server_error", {"times": 9}, Refused(529, "overloaded_error", 4, BUSY)),
    ("server_error", {"status": 502}, AGAIN),
    ("server_error", {"status": 504}, AGAIN),
    ("forbidden", {}, Refused(403, "permission_error", headers=FINAL)),
    ("cut_before_output", {}, AGAIN),
    ("cut_before_output", {"reset": True}, AGAIN),
    ("cut_before_output", {"times": 9}, Refused(502, "api_error", 4)),
    ("cut_text", {}, Broken()),
    ("cut_text", {"reset": True}, Broken()),
    ("cut_thinking", {"times": 2}, Broken(attempts=2)),
    ("cut_arguments", {}, Broken(open="tool_use")),
    ("cut_frame", {}, Broken()),
    ("cut_after_terminal", {}, Good()),
    ("cut_after_terminal", {"reset": True}, Good()),
    ("end_before_output", {}, AGAIN),
    ("silence_before_head", {"seconds": 0.02}, Good()),
    ("silence_after_created", {"seconds": 0.02}, Good()),
    ("silence_mid_text", {"seconds": 0.02}, Good()),
    ("silence_mid_arguments", {"seconds": 0.02}, CALL),
    ("keepalives", {}, Good()),
    ("unknown_events", {}, Good()),
    ("late_events", {}, Good()),
    ("tiny_writes", {}, Good()),
    ("fixed_call_ids", {}, CALL),
    ("error_event", {}, AGAIN),
    ("error_event", {"after": "text"}, Broken(529, "overloaded_error")),
]

#: What only HTTP has.
OVER_HTTP: list[Row] = [
    ("html_error", {}, AGAIN),
    ("html_error", {"times": 9}, Refused(529, "overloaded_error", 4, BUSY)),
    ("html_error", {"status": 404}, Refused(404, "not_found_error", headers=FINAL)),
    ("redirect", {}, Refused(502, "api_error")),
    ("invalid_utf8", {}, Broken()),
    ("invalid_utf8", {"after": "nothing"}, AGAIN),
    ("comments", {}, Good()),
    ("comments_only", {"every_s": 0.005}, Good()),
    ("done_sentinel", {}, Good()),
    ("crlf", {}, Good()),
]

#: JSON that is none, where a wire does not skip it.
MALFORMED: list[Row] = [
    ("malformed_json", {}, Broken()),
    ("malformed_json", {"after": "created"}, AGAIN),
    ("malformed_json", {"after": "nothing"}, AGAIN),
    ("malformed_json", {"after": "call"}, Broken(open="tool_use")),
]

#: The events of the Responses wire.
RESPONSES: list[Row] = [
    ("completed_with_error", {}, AGAIN),
    ("failed", {}, AGAIN),
    ("failed", {"after": "text"}, Broken(529, "overloaded_error")),
    ("failed", {"after": "call"}, Broken(529, "overloaded_error", open="tool_use")),
    ("failed", {"code": "insufficient_quota"}, Refused(429, "rate_limit_error", headers=FINAL)),
    ("incomplete", {}, Good(stop="max_tokens")),
    ("incomplete", {"reason": "content_filter"}, Good(stop="refusal")),
    ("incomplete", {"reason": "other"}, Broken(529, "overloaded_error")),
    ("refusal", {}, Good(stop="refusal")),
    ("rate_limits", {}, Good()),
    ("bare_terminal", {}, Good()),
    ("arguments_in_done", {}, CALL),
    ("arguments_in_item", {}, CALL),
    ("no_arguments", {}, CALL),
    ("no_deltas", {}, Good()),
    ("no_deltas", {"whole": "item"}, Good()),
    ("read_pages_empty", {}, CALL),
    ("read_huge_offset", {}, CALL),
    ("read_spaces", {}, CALL),
    ("interleaved", {}, CALLS),
]
