"""Every fault that the sandbox knows for the wires where an answer is a body, and what becomes of it: a table for
each. P1 and P5 have tables of their own."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import fault_rows
import pytest
from fault_rows import AGAIN, BUSY, CALL, CALLS, FINAL, OVERLOADED, Row, rows
from harness import Live, ask
from outcomes import (
    Broken,
    CallCut,
    Good,
    Outcome,
    Refused,
    expected_of,
    is_broken,
    is_call_cut,
    is_good,
    is_refused,
    kind_of,
)
from samples import sampled, walk
from wires import BODY_WIRES, TOOLS, Wire

from proxy.sandbox import FAULTS, Place

MIB = 1024 * 1024

THOUGHT_AGAIN = Good(2, waits=(1.5,))
OVERFLOW = Refused(413, "request_too_large", words="context window")
NO_JSON = "not JSON"
CUT = Broken(words="cut the answer")
BILLING = Refused(402, "billing_error", headers=FINAL)
INVALID = Refused(400, "invalid_request_error", headers=FINAL)
FORBIDDEN = Refused(403, "permission_error", headers=FINAL)


def limited(attempts: int = 1, headers: dict[str, str] = FINAL, words: str = "") -> Refused:
    return Refused(429, "rate_limit_error", attempts, headers, words)


def unsigned(words: str = "", attempts: int = 1) -> Refused:
    return Refused(401, "authentication_error", attempts, FINAL, words)


BOOM = {"message": "boom"}
LATE = {**BOOM, "after": "text"}
AS_FIRST = "error_event json_error named_error"

#: Errors inside a 200, which mean what their words and numbers say: `core/test_upstream_failures` has all of them.
IN_STREAM: list[Row] = [
    *rows(replace(INVALID, words="boom"), AS_FIRST, {"kind": "invalid_request_error", **BOOM}),
    *rows(OVERFLOW, AS_FIRST, {"kind": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}),
    *rows(AGAIN, AS_FIRST, {"kind": "overloaded_error", **BOOM}),
    *rows(Refused(529, "overloaded_error", 4, BUSY), AS_FIRST, {"kind": "overloaded_error", "times": 9, **BOOM}),
    *rows(Refused(502, "api_error", words="boom"), AS_FIRST, {"kind": "x", **BOOM}),
    *rows(Refused(502, "api_error", words="boom"), "named_error", {"plain": True}),
    *rows(INVALID, "error_event json_error", {"code": 400, "kind": "x", **BOOM}),
    *rows(AGAIN, "error_event json_error", {"code": 503, "kind": "x", **BOOM}),
    *rows(Broken(429, "rate_limit_error", words="boom"), "error_event", {"kind": "rate_limit_error", **LATE}),
    *rows(Broken(529, "overloaded_error", words="boom"), "named_error", {"after": "text"}),
    *rows(Broken(400, "invalid_request_error", whole=None), "error_event", {"kind": "invalid_request_error", **LATE}),
    *rows(
        Broken(type="invalid_request_error", words="prompt is too long", whole=OVERFLOW),
        "error_event",
        {"kind": "invalid_request_error", "message": "over the context window", "after": "text"},
    ),
    *rows(Good(), "json_answer"),
]

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
    *rows(Broken(attempts=2, whole=Good(3, waits=(1.5, 3.0))), "cut_thinking", {"times": 2}),
    *rows(Broken(words="8388608 bytes", whole=None), "huge_frame", {"size": 9 * MIB}),
    *rows(Refused(502, "api_error", words="8388608 bytes"), "huge_frame", {"after": "nothing"}),
    *IN_STREAM,
    *rows(THOUGHT_AGAIN, "error_event", {"after": "thinking"}),
]

#: What chat completions and Messages have in common.
CONVERTED: list[Row] = [
    *rows(AGAIN, "named_error", {"message": ""}),
    *rows(OVERFLOW, "error_event", {"message": "prompt is too long"}),
    *rows(OVERLOADED, "error_event", {"times": 9}),
    *rows(Broken(529, "overloaded_error"), "error_event", {"after": "text"}),
    *rows(Broken(529, "overloaded_error", open="tool_use"), "error_event", {"after": "call"}),
    *rows(Good(), "cut_after_reason end_after_reason"),
    *rows(Good(), "cut_after_reason", {"reset": True}),
    *rows(Good(), "end_after_reason", {"garbled": True}),
    *rows(CALLS, "interleaved"),
    *rows(CALL, "no_arguments whole_arguments"),
    *rows(Broken(open="tool_use", words=NO_JSON, whole=None), "bad_arguments", {"arguments": '{"a":'}),
    *rows(CALL, "bad_arguments", {}, {"arguments": '"x"'}, {"arguments": "7"}, {"arguments": "null"}),
    *rows(CallCut(), "truncated_arguments"),
    *rows(Good(stop="max_tokens"), "incomplete"),
    *rows(CallCut(), "incomplete", {"after": "call"}),
    *rows(Good(stop="refusal"), "incomplete", {"reason": "content_filter"}),
]

CHAT: list[Row] = [
    *CONVERTED,
    *rows(CUT, "end_without_terminal"),
    *rows(INVALID, "flat_error"),
    *rows(AGAIN, "flat_error", {"code": 429}),
    *rows(CALL, "arguments_before_name missing_index missing_ids repeated_names name_in_pieces arguments_at_end"),
    *rows(CALL, "missing_ids", {"empty": True}),
    *rows(CALL, "whole_arguments", {"as_object": True}),
    *rows(CALLS, "index_restarts"),
    *rows(Broken(words="without a name", whole=None), "missing_names"),
    *rows(Good(stop="tool_use", blocks=("text", "tool_use", "text", "tool_use", "text")), "text_between"),
    *rows(Good(), "late_thought no_finish no_done finish_reason several_choices second_choice explicit_nulls"),
    *rows(Good(), "usage", *({"where": where} for where in ("missing", "own", "finish", "choice"))),
    *rows(Good(stop="refusal"), "finish_reason", {"reason": "content_filter"}),
    *rows(Good(), "finish_reason", {"reason": "eos_token"}),
    *rows(Good(), "several_choices", {"index": 1}),
]

P2: list[Row] = [
    *fault_rows.MALFORMED,
    *rows(limited(), "usage_limit"),
    *rows(Good(2, waits=(1.0,)), "rate_limit", {"wrapped": True}),
    *rows(limited(4, {"Retry-After": "5"}), "rate_limit", {"seconds": None, "times": 9}),
    *rows(Good(2), "unauthorized"),
    *rows(INVALID, "html_error", {"status": 404}),  # clients hide the text of a 404 and ask again
    *rows(unsigned("model-proxy auth login p2", 2), "unauthorized", {"times": 9}),
    *rows(Good(2), AS_FIRST, {"kind": "authentication_error"}),
    *rows(limited(4, {"Retry-After": "5"}), AS_FIRST, {"kind": "rate_limit_error", "times": 9}),
    *rows(INVALID, "bad_request"),
    *rows(INVALID, AS_FIRST, {"kind": "not_found_error"}),
    *rows(Refused(400, "invalid_request_error", headers=FINAL, words="no"), "bad_request", {"message": "no"}),
]

#: Where an answer without content may be what the model means.
EMPTY: list[Row] = rows(Good(blocks=()), "empty", {}, {"message": True})

IN_AN_HOUR = limited(1, {"Retry-After": "3600", **FINAL}, "in 1 h 0 min")

P4: list[Row] = [
    *fault_rows.MALFORMED,
    *fault_rows.NOT_FOUND,
    *rows(IN_AN_HOUR, "usage_limit"),
    *rows(unsigned("PROXY_P4_API_KEY"), "unauthorized"),
    *rows(unsigned("PROXY_P4_API_KEY"), AS_FIRST, {"kind": "authentication_error"}),
    *rows(limited(4, {}), AS_FIRST, {"kind": "rate_limit_error", "times": 9}),
    *rows(Refused(404, "not_found_error", headers=FINAL), AS_FIRST, {"kind": "not_found_error"}),
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
    *rows(Good(), "end_without_terminal"),
    *rows(Good(), "end_after_reason", {"sentinel": True}),
    *rows(Good(stop="refusal"), "incomplete", {"reason": "refusal"}),
    *rows(Good(stop="max_tokens"), "incomplete", {"reason": "length"}),
    *rows(Good(), "incomplete", {"reason": "eos_token"}, {"reason": "tool_use"}),  # there is no call
    *rows(Good(), "usage", *({"where": where} for where in ("missing", "start", "delta"))),
    *rows(Good(blocks=("text", "future_block")), "strange_block"),
]

RESPONSES: list[Row] = [
    *fault_rows.RESPONSES,
    *rows(CUT, "end_without_terminal"),
    *rows(OVERFLOW, "failed", {"code": "context_length_exceeded"}),
    *rows(CallCut(), "incomplete", {"after": "call"}),
    *rows(Good(), "sealed_only_added sealed_only_done sealed_differs"),
]

SEARCHED = Good(blocks=("text", "text"))
CREDITS = "see credits and plan"
IMAGE = "PROXY_P3_TOOL_IMAGE"
#: Of the body of an error.
SHAPES = ("flat", "error_only", "nested", "messages", "doubled", "string", "detail", "message", "html", "empty")

P3: list[Row] = [
    *fault_rows.MALFORMED,
    *rows(Good(), "invalid_utf8", {}, {"after": "nothing"}),
    *rows(Good(stop="max_tokens"), "incomplete", {"reason": "other"}),
    # what an account may not do
    *rows(limited(words="24 hours"), "usage_limit", {}, {"retry": True}),
    *rows(replace(BILLING, words=CREDITS), "spending_limit payment_required", {}, {"status": 429}),
    *rows(replace(FORBIDDEN, words="no access"), "forbidden", {}),
    *rows(Good(2), "unauthorized bad_credentials bad_credentials_nested bad_credentials_text"),
    *rows(unsigned("model-proxy auth login p3", 2), "unauthorized bad_credentials", {"times": 9}),
    *rows(Good(2), AS_FIRST, {"kind": "authentication_error"}),
    # a search may have been made
    *rows(Refused(502, "api_error"), "named_error", {"message": ""}),
    *rows(Refused(408, "timeout_error", headers=FINAL), "server_error", {"status": 408, "times": 9}),
    *rows(Refused(409, "api_error", headers=FINAL), "server_error", {"status": 409, "times": 9}),
    # what lies in the request
    *rows(replace(INVALID, words="PROXY_P3_CLIENT_VERSION"), "outdated"),
    *rows(replace(INVALID, words=IMAGE), "bad_image", {}, {"status": 500}),
    *rows(replace(INVALID, words="does not exist"), "no_model", {}, {"status": 404}),
    *rows(replace(INVALID, words="status 404"), "html_error", {"status": 404}),
    *rows(replace(INVALID, words="invalid argument"), "bad_request"),
    *rows(INVALID, AS_FIRST, {"kind": "not_found_error"}),
    *rows(INVALID, "unsealable"),
    *rows(OVERFLOW, "too_large"),
    # what passes
    *rows(AGAIN, "unavailable untyped_error"),
    *rows(Refused(500, "api_error", 4, BUSY, "boom"), "untyped_error", {"times": 9}),
    *rows(Good(2, waits=(2.0,)), "slow_down", {}, {"status": 503}),
    *rows(Broken(429, "rate_limit_error", whole=Good(2, waits=(2.0,))), "slow_down", {"after": "text"}),
    *rows(
        AGAIN,
        "error_body",
        *({"shape": shape} for shape in SHAPES),
    ),
    *rows(Refused(500, "api_error", headers=FINAL), "error_body server_error", {"retry": False}),
    *rows(limited(headers={"Retry-After": "1", **FINAL}), "rate_limit", {"retry": False}),
    *rows(Refused(529, "overloaded_error", 3, BUSY), "empty", {"times": 9}),
    *rows(Good(2, waits=(1.5,)), "empty", {}, {"message": True}),
    # forms of a good stream
    *rows(Good(), "byte_order_mark data_only doom_loop empty_thoughts held_open minimal mixed_ends no_done no_numbers"),
    *rows(Good(), "silent_frames terminal_only thoughts_as_text unfinished_end"),
    *rows(Good(), "silent_frames", {"blank": True}),
    *rows(Good(), "held_open", {"done": False}),
    *rows(Good(), "doom_loop", {"after": "text"}),
    *rows(Good(), "citations", {}, {"where": "late"}, {"where": "item"}),
    *rows(Good(blocks=()), "thoughts_only"),
    *rows(CALL, "arguments_at_once late_text_done named_by_call"),
    *rows(Broken(open="tool_use", whole=None), "arguments_mismatch call_not_done"),
    *rows(CUT, "done_instead"),
    *rows(SEARCHED, "search", {}, {"on_x": True}),
    *rows(SEARCHED, "open_page queries search_failed x_search_events"),
    *rows(Good(blocks=("text",) * 4), "parallel_searches", {}, {"on_x": True}),
]


def less(table: list[Row], others: list[Row]) -> list[Row]:
    """The rows of a table for which others have no outcome of their own."""
    own = [(fault, params) for fault, params, _ in others]
    return [row for row in table if row[:2] not in own]


TABLES: dict[str, list[Row]] = {
    "p2-chat": [*COMMON, *EMPTY, *CHAT, *P2],
    "p3-responses": [*less(COMMON + RESPONSES, P3), *P3],
    "p4-chat": [*COMMON, *EMPTY, *CHAT, *P4],
    "p4-messages": [*COMMON, *EMPTY, *MESSAGES, *P4],
    "p4-responses": [*COMMON, *EMPTY, *RESPONSES, *P4],
}


@pytest.mark.parametrize("wire", BODY_WIRES, ids=str)
def test_every_fault_of_the_sandbox_has_an_outcome(wire: Wire) -> None:
    named = {name for name, _, _ in TABLES[wire.name]}
    assert named == set(FAULTS[Place(wire.label, wire.kind)])
    assert named >= set(FAULTS.get(Place(wire.label, wire.kind, stream=False), ()))


#: Of the reader of frames, which serves all wires.
FRAMING = ("huge_frame", "tiny_writes")

#: Of a request: its wire, fault, members of the fault, outcome, and whether it asks for a stream.
Case = tuple[Wire, str, dict[str, Any], Outcome, bool]


def differs(wire: Wire, fault: str, params: dict[str, Any], outcome: Outcome, stream: bool) -> Sequence[Hashable]:
    """What makes a difference: each row, each fault to each reader of answers, each kind of outcome to each wire, and
    in either form."""
    kind, reader = kind_of(outcome), None if fault in FRAMING else wire.kind
    return (fault, repr(params)), (reader, fault), (wire.name, kind), (kind, stream)


@functools.cache
def cases() -> list[Case]:
    crossed = ((wire, *row, stream) for stream in (True, False) for wire in BODY_WIRES for row in TABLES[wire.name])
    return sampled(crossed, 1, differs)


def case_name(wire: Wire, fault: str, params: dict[str, Any], _outcome: Outcome, stream: bool) -> str:
    form = "stream" if stream else "whole"
    return "-".join([wire.name, form, fault, *(f"{key}={value}" for key, value in params.items())])


@pytest.mark.parametrize("wire", BODY_WIRES, ids=str)
async def test_a_fault_comes_out_as_the_table_says(live: Live, wire: Wire) -> None:
    with walk() as row:
        for case in cases():
            if case[0] == wire:
                with row(case_name(*case)):
                    await comes_out(live, *case)


async def comes_out(live: Live, wire: Wire, fault: str, params: dict[str, Any], outcome: Outcome, stream: bool) -> None:
    upstream, effort = wire.sandbox(live), {"output_config": {"effort": "high"}}
    live.forget()
    upstream.script.replace([{"fault": fault, **params}])
    thinks = effort if "thinking" in f"{fault} {params}" else {}
    answer = await live.post(ask(model=wire.model, tools=TOOLS, stream=stream, **thinks))
    expected = expected_of(outcome, stream)
    if isinstance(expected, Good):
        is_good(answer, expected, stream, thoughts=False)
        assert tuple(live.sleeps) == expected.waits
    elif isinstance(expected, Refused):
        is_refused(answer, expected)
    elif isinstance(expected, CallCut):
        is_call_cut(answer, stream)
    else:
        is_broken(answer, expected, stream)
    assert upstream.total_requests == expected.attempts
    await upstream.idle()
    assert not live.notes.all("internal_error")
