"""Who may go on from which response: decisions over values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.identity import Owner
from proxy.core.long_json import in_order
from proxy.providers.p1_codex.socket import continuation
from proxy.providers.p1_codex.socket.continuation import (
    ContinuationLimits,
    ContinuationPlan,
    Continuations,
    ReservedTurn,
    full_context,
    signature_of,
    transcript_of,
)

ME = Owner("s")
U1 = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
TOOLS = {"type": "additional_tools", "role": "developer", "tools": []}
DEVELOPER = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "ok"}


def call(arguments: str, **members: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments, **members}


def body(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"model": "m", "store": False, "reasoning": {"effort": "low"}, "input": list(items), **members}


def reserve(states: Continuations, owner: Owner, body: dict[str, Any], now: float) -> ReservedTurn:
    transcript = transcript_of(body["input"], states.limits.transcript_bytes)
    return states.reserve(owner, body, transcript, now, signature_of(body))


def after_a_turn(
    *, sent: dict[str, Any] | None = None, output: list[dict[str, Any]] | None = None, now: float = 0.0
) -> Continuations:
    """The state behind one turn: `resp_1` over socket 7."""
    states = Continuations()
    turn = reserve(states, ME, sent or body(U1), now)
    said = [call('{"b": 1, "a":2}')] if output is None else output
    assert states.record(turn, response="resp_1", socket=7, output=said, now=now)
    return states


SAME = call('{"a":2,"b":1}')


@rows(
    "items, members, now, reason",
    [
        ([U1, SAME, OUTPUT], {}, 0.0, None),
        ([U1, call('{"b": 1, "a":2}', id="fc_1", status="completed"), OUTPUT], {}, 0.0, None),
        ([U1, call('{"a":3,"b":1}'), OUTPUT], {}, 0.0, "not_append_only"),
        ([U1, {**SAME, "name": "g"}, OUTPUT], {}, 0.0, "not_append_only"),
        ([U1, {**SAME, "call_id": "d"}, OUTPUT], {}, 0.0, "not_append_only"),
        ([SAME, U1, OUTPUT], {}, 0.0, "not_append_only"),
        ([U1], {}, 0.0, "not_append_only"),
        ([U1, SAME], {}, 0.0, "empty_delta"),
        ([U1, SAME, OUTPUT], {"reasoning": {"effort": "high"}}, 0.0, "prompt_changed"),
        ([U1, SAME, OUTPUT], {"model": "n"}, 0.0, "prompt_changed"),
        ([U1, SAME, OUTPUT], {"tools": []}, 0.0, "prompt_changed"),
        ([U1, SAME, OUTPUT], {}, 1800.0, None),
        ([U1, SAME, OUTPUT], {}, 1801.0, "superseded_turn"),
    ],
)
def test_a_turn_goes_on_from_what_it_repeats_and_adds_to(
    items: list[dict[str, Any]], members: dict[str, Any], now: float, reason: str | None
) -> None:
    plan = reserve(after_a_turn(), ME, body(*items, **members), now).plan
    assert plan == (ContinuationPlan(None, "resp_1", 7, 2) if reason is None else ContinuationPlan(reason))


@pytest.mark.parametrize(("text", "same"), [("{oops", True), ("{oops ", False)])
def test_arguments_that_are_no_json_are_the_same_as_text_only(text: str, same: bool) -> None:
    states = after_a_turn(output=[call("{oops")])
    assert reserve(states, ME, body(U1, call(text), OUTPUT), 0).plan.continues == same


def test_the_order_of_keys_does_not_matter() -> None:
    assert signature_of({"a": 1, "b": {"c": 1, "d": 2}, "input": [1]}) == signature_of({"b": {"d": 2, "c": 1}, "a": 1})


@pytest.mark.parametrize("other", [Owner("t"), Owner("s", "a")])
def test_owners_do_not_share(other: Owner) -> None:
    assert reserve(after_a_turn(), other, body(U1, SAME, OUTPUT), 0).plan.reason == "missing_state"


def test_of_two_turns_at_a_time_the_later_one_counts() -> None:
    states = Continuations()
    first, second = reserve(states, ME, body(U1), 0), reserve(states, ME, body(U1), 0)
    assert (first.plan.reason, second.plan.reason) == ("missing_state", "superseded_turn")
    assert not states.record(first, response="resp_1", socket=1, output=[], now=0)
    assert states.record(second, response="resp_2", socket=2, output=[], now=0)
    assert reserve(states, ME, body(U1, OUTPUT), 0).plan == ContinuationPlan(None, "resp_2", 2, 1)


def test_a_state_is_used_once() -> None:
    states = after_a_turn(output=[])
    plans = [reserve(states, ME, body(U1, OUTPUT), 0).plan for _ in range(2)]
    assert [plan.reason for plan in plans] == [None, "superseded_turn"]


@rows(
    "items, now, aside",
    [
        ([OUTPUT], 0.0, True),
        ([U1], 1800.0, True),
        ([U1], 1801.0, False),
        ([TOOLS, DEVELOPER, OUTPUT], 0.0, True),
        ([U1, OUTPUT], 0.0, False),
        ([DEVELOPER], 0.0, False),
    ],
)
def test_a_single_item_stands_beside_a_longer_conversation(
    items: list[dict[str, Any]], now: float, aside: bool
) -> None:
    states = after_a_turn(sent=body(TOOLS, DEVELOPER, U1))
    assert states.is_aside(ME, body(*items, model="n"), now) is aside
    assert not states.is_aside(Owner("t"), body(*items), now)


def test_beside_a_turn_under_way_counts_what_it_was_asked() -> None:
    for items, aside in (([DEVELOPER, U1], False), ([U1, OUTPUT], True)):
        states = Continuations()
        turn = reserve(states, ME, body(*items), 0)
        assert states.is_aside(ME, body(U1), 0) is aside
        states.abort(turn)
        assert not states.is_aside(ME, body(U1), 0)


def test_an_aborted_turn_leaves_nothing_and_touches_no_later_one() -> None:
    states = Continuations()
    first, second = reserve(states, ME, body(U1), 0), reserve(states, ME, body(U1), 0)
    states.abort(first)
    assert states.is_current(second)
    states.abort(second)
    assert len(states) == 0 and reserve(states, ME, body(U1), 0).plan.reason == "missing_state"


@pytest.mark.parametrize(("response", "socket"), [("", 1), ("resp_1", 0)])
def test_a_turn_without_ids_leaves_nothing(response: str, socket: int) -> None:
    states = Continuations()
    turn = reserve(states, ME, body(U1), 0)
    assert not states.record(turn, response=response, socket=socket, output=[], now=0)
    assert len(states) == 0


def test_a_failed_continuation_becomes_a_whole_request() -> None:
    turn = reserve(after_a_turn(output=[]), ME, body(U1, OUTPUT), 0)
    whole = full_context(turn)
    assert (whole.plan, whole.number) == (ContinuationPlan("full_context_retry"), turn.number)
    other = reserve(Continuations(), ME, body(U1), 0)
    assert full_context(other).plan.reason == "missing_state"


LIMIT = ContinuationLimits().transcript_bytes


def size_of(items: list[dict[str, Any]]) -> int:
    known = transcript_of(items, LIMIT)
    assert known is not None
    return known.size


def test_a_long_conversation_is_not_kept() -> None:
    size = size_of([U1, OUTPUT])
    for limit, kept in ((size, True), (size - 1, False)):
        states = Continuations(ContinuationLimits(transcript_bytes=limit))
        turn = reserve(states, ME, body(U1), 0)
        assert states.record(turn, response="r", socket=1, output=[OUTPUT], now=0) == kept
        assert len(states) == kept


def test_what_can_never_be_kept_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an image of 70 MB not a byte is written out or digested; the request is sent whole and leaves nothing."""
    states = after_a_turn(output=[])
    before = reserve(states, ME, body(U1, OUTPUT), 0)
    image = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "A" * 70_000_000}]}
    with monkeypatch.context() as patched:
        patched.setattr(continuation, "dump_json", None)
        turn = reserve(states, ME, body(U1, OUTPUT, image), 0)
    assert turn.plan == ContinuationPlan("too_large") and not states.is_current(turn) and not states.is_current(before)
    assert not states.record(turn, response="resp_2", socket=7, output=[], now=0)
    states.abort(turn)
    assert len(states) == 0
    assert reserve(states, ME, body(U1, OUTPUT, U1), 0).plan.reason == "missing_state"


def test_many_small_items_are_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"n": 1_000_000}  # its size is not seen before it is written out
    size = len(in_order(item))
    written: list[Any] = []
    monkeypatch.setattr(continuation, "in_order", lambda value: written.append(value) or in_order(value))
    known = transcript_of([item] * 10, 10 * size)
    assert known is not None and known.size == 10 * size
    written.clear()
    assert transcript_of([item] * 20, 10 * size) is None and len(written) == 11


def test_an_answer_that_is_too_large_is_not_kept() -> None:
    states = Continuations(ContinuationLimits(transcript_bytes=1000))
    turn = reserve(states, ME, body(U1), 0)
    assert not states.record(turn, response="r", socket=1, output=[call("x" * 1001)], now=0)
    assert len(states) == 0


@pytest.mark.parametrize("limits", [{"owners": 3}, {"age_s": 2.0}], ids=str)
def test_the_oldest_go_first(limits: dict[str, Any]) -> None:
    states = Continuations(ContinuationLimits(**limits))
    for number in range(5):
        turn = reserve(states, Owner(str(number)), body(U1), number)
        assert states.record(turn, response="r", socket=1, output=[], now=number)
    assert len(states) == 3
    plans = [reserve(states, Owner(str(number)), body(U1, OUTPUT), 4).plan for number in (4, 3, 2)]
    assert all(plan.continues for plan in plans)


def test_a_size_that_was_refused_is_known_of_its_owner_for_a_while() -> None:
    states = Continuations(ContinuationLimits(owners=2, age_s=10.0))
    others = Owner("a"), Owner("b")
    states.refuse(ME, 900, 0.0)
    states.refuse(ME, 700, 5.0)
    assert [states.refused_size(ME, now) for now in (5.0, 15.0, 15.1)] == [700, 700, None]
    assert states.refused_size(others[0], 5.0) is None
    for other in others:
        states.refuse(other, 800, 6.0)
    assert states.refused_size(ME, 6.0) is None and states.refused_size(others[1], 6.0) == 800


def test_nothing_of_a_conversation_is_held() -> None:
    """Only a digest is, so that its length costs no memory."""
    states = after_a_turn(sent=body({**U1, "secret": "the secret words"}))
    assert "secret words" not in repr(states)
    longer = after_a_turn(sent=body(*[U1] * 1000))
    assert len(repr(longer)) - len(repr(states)) < 100 and longer.limits.transcript_bytes >= 64 * 2**20


items = st.sampled_from([U1, OUTPUT, call("{}"), call("x")])


@given(st.lists(items, max_size=4), st.lists(items, max_size=4), st.lists(items, max_size=4))
def test_the_delta_is_what_follows_the_transcript(
    sent: list[dict[str, Any]], said: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    states = after_a_turn(sent=body(*sent), output=said)
    plan = reserve(states, ME, body(*sent, *said, *more), 0).plan
    assert plan.continues == bool(more) or not (sent or said or more)
    if plan.continues:
        assert [*sent, *said, *more][plan.start :] == more


def test_half_a_character_does_no_harm() -> None:
    assert transcript_of([{"type": "message", "content": "\ud83d"}], LIMIT)
