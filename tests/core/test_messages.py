"""MessageStream builds legal streams, Fold makes replies of them."""

from __future__ import annotations

from typing import Any

import pytest
from checks import check_message_stream
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.hub_events import CALL, TEXT, THINKING, cited, folded, said, signed, text, thought, typed
from proxy.core.messages import Event, Fold, MessageStream
from proxy.core.reducer import BadAnswer
from proxy.core.tokens.usage import usage_of
from proxy.core.visible import Visible

LINKS = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}


def stream() -> MessageStream:
    return MessageStream("msg_1", "m", input_tokens=2)


def kinds(made: MessageStream) -> str:
    """The events since the last look, as one text; "started" for `message_start`."""
    names = {"message_start": "started"}
    return " ".join(names.get(event["type"], event["type"].removeprefix("content_block_")) for event in made.take())


#: Methods with their arguments; a text instead of one is what `kinds` then finds.
Steps = list[Any]
STEPS: dict[str, Steps] = {
    "the start is said once": [("start",), ("ping",), ("start",), "started ping"],
    "pings do not pile up": [("ping",), ("ping",), "started ping"],
    "a later block waits for the earlier one": [
        *[("open", "a", TEXT), ("open", "b", CALL), ("delta", "b", typed("{}")), ("close", "b"), "started start"],
        *[("delta", "a", text("x")), ("close", "a"), "delta stop start delta stop"],
    ],
    "a held place keeps back what follows": [
        *[("hold", "links"), ("open", "text", TEXT), ("delta", "text", text("x")), ""],
        *[("fill", "links", LINKS), "started start stop start delta"],
    ],
    "closing what is not there does nothing": [("close", "a"), ""],
    "interrupt closes all but calls": [
        *[("open", "a", TEXT), ("open", "b", THINKING), ("open", "c", CALL), ("open", "d", TEXT), ("interrupt",)],
        "started start stop start stop start",
    ],
}


@rows("case", STEPS)
def test_what_comes_out(case: str) -> None:
    made = stream()
    for step in STEPS[case]:
        if isinstance(step, str):
            assert kinds(made) == step
        else:
            getattr(made, step[0])(*step[1:])


def test_the_start_carries_the_estimate_and_begun_counts_what_is_seen() -> None:
    made = stream()
    made.hold("links")
    made.open("text", TEXT)
    assert made.begun == 0
    made.fill("links", LINKS)
    assert made.begun == 2
    assert made.take()[0]["message"]["usage"]["input_tokens"] == 2


@rows(
    "steps, seen",
    [
        ([], Visible.NOTHING),
        ([("start",)], Visible.FRAMING),
        ([("ping",)], Visible.FRAMING),
        ([("open", "a", THINKING), ("delta", "a", thought("hm")), ("close", "a")], Visible.THINKING),
        ([("open", "a", {"type": "redacted_thinking", "data": "x"}), ("close", "a")], Visible.THINKING),
        ([("open", "a", THINKING), ("open", "b", CALL)], Visible.THINKING),  # the call waits behind the thought
        ([("open", "a", THINKING), ("open", "b", CALL), ("interrupt",)], Visible.CONTENT),
        ([("open", "a", CALL)], Visible.CONTENT),
        ([("open", "a", TEXT)], Visible.CONTENT),
        ([("hold", "a")], Visible.NOTHING),
        ([("hold", "a"), ("fill", "a", LINKS)], Visible.CONTENT),
        ([("open", "a", THINKING), ("close", "a"), ("finish", "end_turn", {})], Visible.CONTENT),
    ],
)
def test_it_knows_what_a_client_has_seen_as_its_events_say(steps: Steps, seen: Visible) -> None:
    made = stream()
    for name, *arguments in steps:
        getattr(made, name)(*arguments)
    assert made.visible is seen and Visible.NOTHING.after(made.take()) is seen


def test_what_must_not_be_done_twice_counts_as_seen() -> None:
    made = stream()
    made.commit()
    assert made.visible is Visible.CONTENT


def test_another_attempt_goes_on_behind_what_was_shown() -> None:
    made = stream()
    made.open("a", THINKING)
    made.close("a")
    made.open("b", THINKING)
    made.interrupt()
    again = made.afresh(shown=True)
    again.open("a", TEXT)
    check_message_stream([*made.take(), *again.take()], cut=True)
    assert made.afresh(shown=False).started


def test_a_key_is_free_again_once_its_block_is_out() -> None:
    made = stream()
    made.open("a", TEXT)
    made.close("a")
    made.open("a", TEXT)
    with pytest.raises(BadAnswer, match="twice"):
        made.open("a", TEXT)


def open_keys(made: MessageStream) -> list[object]:
    return [key for key, block in made._blocks.items() if not block.closed]


def test_a_stream_is_in_a_block_until_all_are_closed() -> None:
    made = stream()
    for key in "cab":
        made.open(key, TEXT)
    made.close("a")
    assert open_keys(made) == ["c", "b"]
    made.close("c")
    assert made.in_block
    made.close("b")
    assert not made.in_block


@pytest.mark.parametrize("waiting", [text("12345"), cited({"url": "12345"})])
def test_what_waits_is_bounded(waiting: dict[str, Any]) -> None:
    made = MessageStream("msg_1", "m", max_held=29)
    made.open("a", TEXT)
    made.open("b", TEXT)
    made.delta("b", waiting)
    with pytest.raises(BadAnswer, match="more than 29 bytes"):
        made.delta("b", waiting)  # the type word counts too


@given(
    st.lists(
        st.tuples(st.sampled_from(["open", "hold", "fill", "delta", "close", "ping"]), st.integers(0, 4)), max_size=40
    )
)
def test_any_use_gives_a_legal_stream(steps: list[tuple[str, int]]) -> None:
    made = stream()
    held: set[int] = set()
    for verb, key in steps:
        if verb == "ping":
            made.ping()
        elif verb in ("open", "hold") and key not in made._blocks:
            made.open(key, TEXT) if verb == "open" else made.hold(key)
            if verb == "hold":
                held.add(key)
        elif verb == "fill" and key in held:
            made.fill(key, TEXT)
            held.discard(key)
        elif verb in ("delta", "close") and key not in held and key in open_keys(made):
            made.delta(key, text("x")) if verb == "delta" else made.close(key)
    for key in sorted(held):
        made.fill(key, TEXT)
    for key in open_keys(made):
        made.close(key)
    made.finish("end_turn", usage_of(1, 1))
    check_message_stream(made.take())


def test_a_reply_has_the_content_of_the_stream_and_no_empty_text() -> None:
    made = stream()
    for key, block, deltas in (
        ("t", THINKING, [thought("hm"), signed("s")]),
        ("x", TEXT, []),
        ("c", CALL, [typed('{"a":'), typed("1}")]),
    ):
        made.open(key, block)
        for delta in deltas:
            made.delta(key, delta)
        made.close(key)
    made.finish("tool_use", usage_of(9, 4, cache_read=1))
    reply = folded(made.take())
    assert reply["content"] == [{**THINKING, "thinking": "hm", "signature": "s"}, {**CALL, "input": {"a": 1}}]
    assert (reply["stop_reason"], reply["usage"]["input_tokens"]) == ("tool_use", 9)


def test_keepalives_do_not_change_a_reply() -> None:
    made = stream()
    made.open("x", TEXT)
    events = made.take()
    still_here = {"stop_reason": None, "stop_sequence": None}
    events += [
        {"type": "ping"},
        said(text("")),
        {"type": "message_delta", "delta": still_here, "usage": {"output_tokens": 0}},
    ]
    made.delta("x", text("hi"))
    made.close("x")
    made.finish("end_turn", usage_of(9, 4))
    reply = folded(events + made.take())
    assert reply["content"] == [{"type": "text", "text": "hi"}]
    assert (reply["stop_reason"], reply["usage"]["output_tokens"]) == ("end_turn", 4)


def test_a_cut_stream_is_not_complete() -> None:
    fold = Fold()
    made = stream()
    made.open("x", TEXT)
    fold.add(made.take())
    assert not fold.complete


LONG = "x" * 100


@rows(
    "block, delta",
    [
        (TEXT, text(LONG)),
        (TEXT, cited({"url": LONG})),
        (THINKING, signed(LONG)),
        ({"type": "of_tomorrow", "more": LONG}, text("")),
    ],
)
def test_a_reply_is_bounded(block: dict[str, Any], delta: dict[str, Any]) -> None:
    made = stream()
    made.open("x", block)
    made.delta("x", delta)
    events: list[Event] = made.take()
    Fold(max_chars=200).add(events)
    with pytest.raises(OverflowError):
        Fold(max_chars=99).add(events)
