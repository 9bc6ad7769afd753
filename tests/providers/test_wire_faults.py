"""Every fault that the sandbox knows for P2 and P4, and what becomes of it: a table for each wire."""

from __future__ import annotations

from typing import Any

import fault_rows
import pytest
from fault_rows import AGAIN, BUSY, CALL, CALLS, FINAL, Row
from harness import Live, ask
from outcomes import Broken, CallCut, Good, Outcome, Refused, is_broken, is_call_cut, is_good, is_refused
from wires import TOOLS, WIRES, Wire

from proxy.sandbox import FAULTS, Place

MIB = 1024 * 1024

THOUGHT_AGAIN = Good(2, waits=(1.5,))
OVERFLOW = Refused(413, "request_too_large", words="context window")
NO_OBJECT = "not a JSON object"

#: In front of every backend, and of every stream.
COMMON: list[Row] = [
    *fault_rows.ANSWER,
    *fault_rows.OVER_HTTP,
    ("rate_limit", {"seconds": 2}, Good(2, waits=(2.0,))),
    ("rate_limit", {"seconds": None}, AGAIN),
    ("rate_limit", {"seconds": 2, "times": 9}, Refused(429, "rate_limit_error", 4, {"Retry-After": "2"})),
    ("rate_limit", {"seconds": 31}, Refused(429, "rate_limit_error", headers={"Retry-After": "31"})),
    ("server_error", {"status": 503}, AGAIN),
    ("payment_required", {}, Refused(402, "billing_error", headers=FINAL)),
    ("context_http", {}, OVERFLOW),
    ("bad_request", {"status": 422, "message": "no"}, Refused(422, "invalid_request_error", headers=FINAL, words="no")),
    ("cut_thinking", {}, THOUGHT_AGAIN),
    ("end_without_terminal", {}, Broken(words="cut the answer")),
    ("huge_frame", {"size": 20 * MIB}, Broken(words="8388608 bytes")),
    ("huge_frame", {"after": "nothing"}, Refused(502, "api_error", words="8388608 bytes")),
    ("empty", {}, Good(blocks=())),
    ("empty", {"message": True}, Good(blocks=())),
    ("error_event", {"times": 9}, Refused(529, "overloaded_error", 4, BUSY)),
    ("error_event", {"after": "call"}, Broken(529, "overloaded_error", open="tool_use")),
    ("error_event", {"after": "thinking"}, THOUGHT_AGAIN),
]

#: What chat completions and Messages have in common.
CONVERTED: list[Row] = [
    ("error_event", {"message": "prompt is too long"}, OVERFLOW),
    ("interleaved", {}, CALLS),
    ("no_arguments", {}, CALL),
    ("bad_arguments", {"arguments": '{"a":'}, Broken(open="tool_use", words=NO_OBJECT)),
    ("truncated_arguments", {}, CallCut()),
    ("whole_arguments", {}, CALL),
    ("incomplete", {}, Good(stop="max_tokens")),
    ("incomplete", {"after": "call"}, CallCut()),
    ("incomplete", {"reason": "content_filter"}, Good(stop="refusal")),
]

CHAT: list[Row] = [
    *CONVERTED,
    ("error_event", {"message": "boom", "kind": "x"}, Refused(502, "api_error", words="boom")),
    ("arguments_before_name", {}, CALL),
    ("index_restarts", {}, CALLS),
    ("missing_index", {}, CALL),
    ("missing_ids", {}, CALL),
    ("missing_ids", {"empty": True}, CALL),
    ("missing_names", {}, Broken(words="without a name")),
    ("repeated_names", {}, CALL),
    ("name_in_pieces", {}, CALL),
    ("bad_arguments", {}, Broken(words=NO_OBJECT)),
    ("arguments_at_end", {}, CALL),
    ("whole_arguments", {"as_object": True}, CALL),
    ("text_between", {}, Good(stop="tool_use", blocks=("text", "tool_use", "text", "tool_use", "text"))),
    ("late_thought", {}, Good()),
    *(("usage", {"where": where}, Good()) for where in ("missing", "own", "finish", "choice")),
    ("no_finish", {}, Good()),
    ("no_done", {}, Good()),
    ("finish_reason", {}, Good()),
    ("finish_reason", {"reason": "content_filter"}, Good(stop="refusal")),
    ("finish_reason", {"reason": "eos_token"}, Good()),
    ("several_choices", {}, Good()),
    ("several_choices", {"index": 1}, Good()),
    ("second_choice", {}, Good()),
    ("explicit_nulls", {}, Good()),
]

P2: list[Row] = [
    ("malformed_json", {}, Good()),
    ("malformed_json", {"after": "nothing"}, Good()),
    ("malformed_json", {"after": "call"}, CALL),
    ("usage_limit", {}, Refused(429, "rate_limit_error", headers=FINAL)),
    ("rate_limit", {"wrapped": True}, Good(2, waits=(1.0,))),
    ("rate_limit", {"seconds": None, "times": 9}, Refused(429, "rate_limit_error", 4, {"Retry-After": "5"})),
    ("unauthorized", {}, Good(2)),
    ("unauthorized", {"times": 9}, Refused(401, "authentication_error", 2, FINAL, "model-proxy auth login p2")),
    ("bad_request", {}, Good(2)),
    ("bad_request", {"times": 2}, Refused(400, "invalid_request_error", 2, FINAL)),
    ("bad_request", {"message": "no"}, Refused(400, "invalid_request_error", headers=FINAL, words="no")),
]

P4: list[Row] = [
    *fault_rows.MALFORMED,
    (
        "usage_limit",
        {},
        Refused(
            429, "rate_limit_error", headers={"Retry-After": "3600", **FINAL}, words="available again in 1 h 0 min"
        ),
    ),
    ("unauthorized", {}, Refused(401, "authentication_error", headers=FINAL, words="PROXY_P4_API_KEY")),
    ("bad_request", {}, Refused(400, "invalid_request_error", headers=FINAL, words="Console Go")),
    ("forbidden", {"kind": "RegionError"}, Refused(403, "permission_error", headers=FINAL)),
    ("gateway_error", {}, Refused(402, "billing_error", headers=FINAL)),
    ("gateway_error", {"kind": "MonthlyLimitError"}, Refused(402, "billing_error", headers=FINAL)),
    ("gateway_error", {"kind": "UserLimitError"}, Refused(402, "billing_error", headers=FINAL)),
    ("gateway_error", {"kind": "AuthError"}, Refused(401, "authentication_error", headers=FINAL)),
    ("gateway_error", {"kind": "ModelError"}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("gateway_error", {"kind": "EntitlementError"}, Refused(403, "permission_error", headers=FINAL)),
    ("gateway_error", {"kind": "RateLimitError"}, AGAIN),
    ("gateway_error", {"kind": "FreeUsageLimitError"}, Refused(429, "rate_limit_error", headers=FINAL)),
    ("gateway_error", {"kind": "BlackUsageLimitError"}, Refused(429, "rate_limit_error", headers=FINAL)),
    ("gateway_error", {"kind": "MissingSessionID"}, Refused(400, "invalid_request_error", headers=FINAL)),
    ("client_closed", {}, Refused(499, "invalid_request_error", headers=FINAL)),
    ("plain_error", {}, Refused(418, "invalid_request_error", headers=FINAL)),
    ("plain_error", {"status": 500}, AGAIN),
    ("cost_together", {}, Good()),
    ("cost_later", {}, Good()),
    ("no_cost", {}, Good()),
]

MESSAGES: list[Row] = [
    *CONVERTED,
    ("bad_arguments", {}, Broken(open="tool_use", words=NO_OBJECT)),
    ("incomplete", {"reason": "refusal"}, Good(stop="refusal")),
    ("incomplete", {"reason": "length"}, Good(stop="max_tokens")),
    ("incomplete", {"reason": "eos_token"}, Good()),
    *(("usage", {"where": where}, Good()) for where in ("missing", "start", "delta")),
    ("strange_block", {}, Good(blocks=("text", "future_block"))),
]

RESPONSES: list[Row] = [
    *fault_rows.RESPONSES,
    ("failed", {"code": "context_length_exceeded"}, OVERFLOW),
    ("incomplete", {"after": "call"}, CallCut()),
    ("sealed_only_added", {}, Good()),
    ("sealed_only_done", {}, Good()),
    ("sealed_differs", {}, Good()),
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
            is_call_cut(answer, outcome, stream)
        else:
            is_broken(answer, outcome, stream)
        assert upstream.total_requests - before == outcome.attempts
        await upstream.idle()
    assert not live.notes.all("internal_error")
