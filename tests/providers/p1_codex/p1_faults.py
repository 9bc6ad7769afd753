"""The faults that the sandbox knows for P1, and what becomes of each over either transport."""

from __future__ import annotations

from typing import Any

import fault_rows
import pytest
from fault_rows import AGAIN, BUSY, CALL, FINAL, Row
from harness import Answer, Live, ask, tool
from outcomes import Broken, Good, Outcome, Refused, expected_of, is_broken, is_good

TOOLS = [tool("Bash"), tool("Read", "file_path")]


FORBIDDEN = Refused(403, "permission_error", headers=FINAL)

#: What an answer can suffer on any transport. Of codes there is one of each course: `core/test_upstream_failures` and
#: `test_p1_failures` have the others.
SHARED: list[Row] = [
    *fault_rows.ANSWER,
    *fault_rows.RESPONSES,
    ("usage_limit", {}, Refused(429, "rate_limit_error", headers={"Retry-After": "3600", **FINAL})),
    ("unauthorized", {}, Good(2)),
    ("unauthorized", {"times": 9}, Refused(401, "authentication_error", 2, FINAL, "model-proxy auth login p1")),
    ("context_http", {}, Refused(413, "request_too_large")),
    ("unsealable", {}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("cut_thinking", {}, Good(2, blocks=("thinking", "text"), waits=(1.5,))),
    ("cut_thinking", {"times": 2}, Broken(attempts=2, whole=Good(3, blocks=("thinking", "text"), waits=(1.5, 3.0)))),
    ("end_without_terminal", {}, Broken()),
    ("empty", {}, AGAIN),
    ("empty", {"message": True}, AGAIN),
    ("empty", {"times": 9}, Refused(529, "overloaded_error", 3, BUSY, "without producing any output")),
    ("failed", {"after": "thinking"}, Good(2, blocks=("thinking", "text"), waits=(1.5,))),
    ("failed", {"code": "context_length_exceeded"}, Refused(413, "request_too_large")),
    ("failed", {"code": "usage_not_included"}, Refused(403, "permission_error", headers=FINAL)),
    ("failed", {"code": "invalid_prompt"}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("failed", {"code": "server_is_overloaded"}, AGAIN),
    ("failed", {"code": "rate_limit_exceeded"}, Good(2, waits=(1.3,))),
    ("failed", {"code": "unexplained"}, AGAIN),
    ("error_event", {"flat": True}, AGAIN),
    ("error_event", {"kind": "usage_not_included", "status": 429}, FORBIDDEN),
    ("error_event", {"status": 503, "message": "over the context window"}, Refused(413, "request_too_large")),
    ("error_event", {"code": "slow_down", "headers": {"Retry-After": "3"}}, Good(2, waits=(3.0,))),
    ("incomplete", {"event": "response.completed"}, Good(stop="max_tokens")),
    ("incomplete", {"reason": "other", "after": "created"}, AGAIN),
    ("incomplete", {"reason": None, "after": "created"}, AGAIN),
    ("rate_limits", {"reached": False}, Good()),
    ("rate_limits", {"then_end": True}, Refused(429, "rate_limit_error", headers={"Retry-After": "600", **FINAL})),
    ("read_spaces", {"closed": False}, CALL),
    ("read_spaces", {"stall": True}, CALL),
    ("sealed_only_added", {}, Good(blocks=("thinking", "text"))),
    ("sealed_only_done", {}, Good(blocks=("thinking", "text"))),
    ("sealed_differs", {}, Good(blocks=("thinking", "text"))),
]

#: What only HTTP has, or takes differently.
HTTP: list[Row] = [
    *fault_rows.OVER_HTTP,
    *fault_rows.NOT_FOUND,
    *fault_rows.MALFORMED,
    ("json_answer", {}, Good()),
    ("json_error", {"kind": "usage_not_included"}, FORBIDDEN),
    ("json_error", {"kind": "overloaded_error"}, AGAIN),
    ("named_error", {}, AGAIN),
    ("named_error", {"message": ""}, Refused(500, "api_error")),
    ("named_error", {"kind": "invalid_request_error"}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("huge_frame", {}, Broken(whole=None)),
    ("huge_frame", {"after": "nothing"}, Refused(502, "api_error")),
]


def play(live: Live, *steps: dict[str, Any]) -> None:
    """Steps of the script of the simulated upstream."""
    live.sandbox.p1.script.extend(steps)


def case_name(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return "-".join(f"{key}={value[key]}" for key in value) or "plain" if isinstance(value, dict) else "then"


def asked_for(fault: str, params: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    """A request in whose answer there is room for the fault."""
    thinks = any(word in f"{fault} {params}" for word in ("thinking", "sealed"))
    effort = {"output_config": {"effort": "high"}} if thinks else {}
    return ask(tools=TOOLS, stream=stream, **effort)


#: Words about what cannot be read; another transport may help.
UNREADABLE = ("binary", "protocol", "not JSON")


def comes_out(live: Live, answer: Answer, outcome: Outcome, *, stream: bool) -> Outcome:
    """What the client got, and what it took; gives the outcome that was due."""
    outcome = expected_of(outcome, stream)
    assert not live.notes.all("internal_error")
    if getattr(outcome, "words", None) in UNREADABLE:
        assert "; p1.transport=http goes without WebSocket" in answer.raw.decode()
    if isinstance(outcome, Good):
        is_good(answer, outcome, stream)
        assert live.sleeps == pytest.approx(outcome.waits)
    elif isinstance(outcome, Refused):
        assert (answer.status, answer.error["type"]) == (outcome.status, outcome.type)
        assert outcome.words in answer.error["message"]
        hints = {name: answer.headers[name] for name in ("Retry-After", "x-should-retry") if name in answer.headers}
        assert hints == outcome.headers or (not outcome.headers and "x-should-retry" not in hints)
    else:
        assert isinstance(outcome, Broken)
        is_broken(answer, outcome, stream)
        assert outcome.words in answer.raw.decode()
    return outcome
