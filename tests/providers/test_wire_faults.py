"""Every fault that the sandbox knows for P2 and P4, and what becomes of it: a table for each wire."""

from __future__ import annotations

from typing import Any

import fault_rows
import pytest
from fault_rows import AGAIN, CALL, CALLS, FINAL, OVERLOADED, Row, rows
from harness import Live, ask
from outcomes import Broken, CallCut, Good, Outcome, Refused, is_broken, is_call_cut, is_good, is_refused
from wires import TOOLS, WIRES, Wire

from proxy.sandbox import FAULTS, Place

MIB = 1024 * 1024

THOUGHT_AGAIN = Good(2, waits=(1.5,))
OVERFLOW = Refused(413, "request_too_large", words="context window")
NO_JSON = "not JSON"
BILLING = Refused(402, "billing_error", headers=FINAL)
INVALID = Refused(400, "invalid_request_error", headers=FINAL)
FORBIDDEN = Refused(403, "permission_error", headers=FINAL)


def limited(attempts: int = 1, headers: dict[str, str] = FINAL, words: str = "") -> Refused:
    return Refused(429, "rate_limit_error", attempts, headers, words)


def unsigned(words: str = "", attempts: int = 1) -> Refused:
    return Refused(401, "authentication_error", attempts, FINAL, words)


#: In front of every backend, and of every stream.
COMMON: list[Row] = [
    *fault_rows.ANSWER,
    *fault_rows.OVER_HTTP,
    *rows(Good(2, waits=(2.0,)), "rate_limit", {"seconds": 2}),
    *rows(AGAIN, "rate_limit", {"seconds": None}),
    *rows(limited(4, {"Retry-After": "2"}), "rate_limit", {"seconds": 2, "times": 9}),
    *rows(limited(headers={"Retry-After": "31"}), "rate_limit", {"seconds": 31}),
    *rows(AGAIN, "server_error", {"status": 503}),
    *rows(BILLING, "payment_required"),
    *rows(OVERFLOW, "context_http"),
    ("bad_request", {"status": 422, "message": "no"}, Refused(422, "invalid_request_error", headers=FINAL, words="no")),
    *rows(THOUGHT_AGAIN, "cut_thinking"),
    *rows(Broken(words="cut the answer"), "end_without_terminal"),
    *rows(Broken(words="8388608 bytes"), "huge_frame", {"size": 20 * MIB}),
    *rows(Refused(502, "api_error", words="8388608 bytes"), "huge_frame", {"after": "nothing"}),
    *rows(Good(blocks=()), "empty", {}, {"message": True}),
    *rows(OVERLOADED, "error_event", {"times": 9}),
    *rows(Broken(529, "overloaded_error", open="tool_use"), "error_event", {"after": "call"}),
    *rows(THOUGHT_AGAIN, "error_event", {"after": "thinking"}),
]

#: What chat completions and Messages have in common.
CONVERTED: list[Row] = [
    *rows(OVERFLOW, "error_event", {"message": "prompt is too long"}),
    *rows(CALLS, "interleaved"),
    *rows(CALL, "no_arguments whole_arguments"),
    *rows(Broken(open="tool_use", words=NO_JSON), "bad_arguments", {"arguments": '{"a":'}),
    *rows(CALL, "bad_arguments", {}, {"arguments": '"x"'}, {"arguments": "7"}, {"arguments": "null"}),
    *rows(CallCut(), "truncated_arguments"),
    *rows(Good(stop="max_tokens"), "incomplete"),
    *rows(CallCut(), "incomplete", {"after": "call"}),
    *rows(Good(stop="refusal"), "incomplete", {"reason": "content_filter"}),
]

CHAT: list[Row] = [
    *CONVERTED,
    *rows(Refused(502, "api_error", words="boom"), "error_event", {"message": "boom", "kind": "x"}),
    *rows(CALL, "arguments_before_name missing_index missing_ids repeated_names name_in_pieces arguments_at_end"),
    *rows(CALL, "missing_ids", {"empty": True}),
    *rows(CALL, "whole_arguments", {"as_object": True}),
    *rows(CALLS, "index_restarts"),
    *rows(Broken(words="without a name"), "missing_names"),
    *rows(Good(stop="tool_use", blocks=("text", "tool_use", "text", "tool_use", "text")), "text_between"),
    *rows(Good(), "late_thought no_finish no_done finish_reason several_choices second_choice explicit_nulls"),
    *rows(Good(), "usage", *({"where": where} for where in ("missing", "own", "finish", "choice"))),
    *rows(Good(stop="refusal"), "finish_reason", {"reason": "content_filter"}),
    *rows(Good(), "finish_reason", {"reason": "eos_token"}),
    *rows(Good(), "several_choices", {"index": 1}),
]

P2: list[Row] = [
    *rows(Good(), "malformed_json", {}, {"after": "nothing"}),
    *rows(CALL, "malformed_json", {"after": "call"}),
    *rows(limited(), "usage_limit"),
    *rows(Good(2, waits=(1.0,)), "rate_limit", {"wrapped": True}),
    *rows(limited(4, {"Retry-After": "5"}), "rate_limit", {"seconds": None, "times": 9}),
    *rows(Good(2), "unauthorized"),
    *rows(INVALID, "html_error", {"status": 404}),  # clients hide the text of a 404 and ask again
    *rows(unsigned("model-proxy auth login p2", 2), "unauthorized", {"times": 9}),
    *rows(INVALID, "bad_request"),
    *rows(Refused(400, "invalid_request_error", headers=FINAL, words="no"), "bad_request", {"message": "no"}),
]

IN_AN_HOUR = limited(1, {"Retry-After": "3600", **FINAL}, "available again in 1 h 0 min")

P4: list[Row] = [
    *fault_rows.MALFORMED,
    *fault_rows.NOT_FOUND,
    *rows(IN_AN_HOUR, "usage_limit"),
    *rows(unsigned("PROXY_P4_API_KEY"), "unauthorized"),
    *rows(Refused(400, "invalid_request_error", headers=FINAL, words="Console Go"), "bad_request"),
    *rows(FORBIDDEN, "forbidden", {"kind": "RegionError"}),
    *rows(BILLING, "gateway_error", {}, {"kind": "MonthlyLimitError"}, {"kind": "UserLimitError"}),
    *rows(unsigned(), "gateway_error", {"kind": "AuthError"}),
    *rows(INVALID, "gateway_error", {"kind": "ModelError"}, {"kind": "MissingSessionID"}),
    *rows(FORBIDDEN, "gateway_error", {"kind": "EntitlementError"}),
    *rows(AGAIN, "gateway_error", {"kind": "RateLimitError"}),
    *rows(limited(), "gateway_error", {"kind": "FreeUsageLimitError"}, {"kind": "BlackUsageLimitError"}),
    *rows(Refused(499, "invalid_request_error", headers=FINAL), "client_closed"),
    *rows(Refused(418, "invalid_request_error", headers=FINAL), "plain_error"),
    *rows(AGAIN, "plain_error", {"status": 500}),
    *rows(Good(), "cost_together cost_later no_cost"),
]

MESSAGES: list[Row] = [
    *CONVERTED,
    *rows(Good(stop="refusal"), "incomplete", {"reason": "refusal"}),
    *rows(Good(stop="max_tokens"), "incomplete", {"reason": "length"}),
    *rows(Good(), "incomplete", {"reason": "eos_token"}),
    *rows(Good(), "usage", *({"where": where} for where in ("missing", "start", "delta"))),
    *rows(Good(blocks=("text", "future_block")), "strange_block"),
]

RESPONSES: list[Row] = [
    *fault_rows.RESPONSES,
    *rows(OVERFLOW, "failed", {"code": "context_length_exceeded"}),
    *rows(CallCut(), "incomplete", {"after": "call"}),
    *rows(Good(), "sealed_only_added sealed_only_done sealed_differs"),
]

TABLES: dict[str, list[Row]] = {
    "p2-chat": [*COMMON, *CHAT, *P2],
    "p4-chat": [*COMMON, *CHAT, *P4],
    "p4-messages": [*COMMON, *MESSAGES, *P4],
    "p4-responses": [*COMMON, *RESPONSES, *P4],
}


@pytest.mark.parametrize("wire", WIRES, ids=str)
def test_every_fault_of_the_sandbox_has_an_outcome(wire: Wire) -> None:
    named = {name for name, _, _ in TABLES[wire.name]}
    assert named == set(FAULTS[Place(wire.label, wire.kind)])
    assert named >= set(FAULTS[Place(wire.label, wire.kind, stream=False)])


def case_name(wire: Wire, fault: str, params: dict[str, Any]) -> str:
    return "-".join([wire.name, fault, *(f"{key}={value}" for key, value in params.items())])


CASES = [
    pytest.param(wire, fault, params, outcome, id=case_name(wire, fault, params))
    for wire in WIRES
    for fault, params, outcome in TABLES[wire.name]
]


@pytest.mark.parametrize(("wire", "fault", "params", "outcome"), CASES)
async def test_a_fault_comes_out_as_the_table_says(
    live: Live, wire: Wire, fault: str, params: dict[str, Any], outcome: Outcome
) -> None:
    upstream = wire.sandbox(live)
    effort: dict[str, Any] = {"output_config": {"effort": "high"}} if "thinking" in f"{fault} {params}" else {}
    for stream in (True, False):
        before = upstream.total_requests
        live.sleeps.clear()
        upstream.script.replace([{"fault": fault, **params}])
        answer = await live.post(ask(model=wire.model, tools=TOOLS, stream=stream, **effort))
        if isinstance(outcome, Good):
            is_good(answer, outcome, stream, thoughts=False)
            assert tuple(live.sleeps) == outcome.waits
        elif isinstance(outcome, Refused):
            is_refused(answer, outcome)
        elif isinstance(outcome, CallCut):
            is_call_cut(answer, stream)
        else:
            is_broken(answer, outcome, stream)
        assert upstream.total_requests - before == outcome.attempts
        await upstream.idle()
    assert not live.notes.all("internal_error")
