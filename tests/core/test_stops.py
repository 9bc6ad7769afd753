"""Stop sequences that are applied here."""

from __future__ import annotations

from typing import Any

from checks import check_message_stream
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from core.hub_events import CALL, TEXT, THINKING, begun, ended, said, text, thought, typed
from core.hub_events import answer as whole
from core.strategies import cut_places, pieces
from proxy.core.messages import Event, MessageStream
from proxy.core.stops import MAX_LENGTH, MAX_STOPS, StopSequences, stops_of
from proxy.core.tokens.usage import usage_of

letters = st.text(alphabet="ab<", max_size=12)
stop_lists = st.lists(st.text(alphabet="ab<", min_size=1, max_size=4), min_size=1, max_size=3).map(tuple)


def answer(blocks: list[list[str]]) -> list[Event]:
    stream = MessageStream("m", "m")
    for number, texts in enumerate(blocks):
        stream.open(number, TEXT)
        for piece in texts:
            stream.delta(number, text(piece))
        stream.close(number)
    stream.finish("end_turn", usage_of(1, 1))
    return stream.take()


def cut(events: list[Event], stops: tuple[str, ...]) -> tuple[list[str], str | None]:
    """The texts of the blocks and the stop sequence that ended them."""
    cutter = StopSequences(stops, input_tokens=1)
    out: list[Event] = []
    for event in events:
        out += cutter.feed([event])
    check_message_stream(out)
    texts: dict[int, str] = {}
    for event in out:
        if event["type"] == "content_block_start":
            texts[event["index"]] = ""
        if event["type"] == "content_block_delta":
            texts[event["index"]] += event["delta"]["text"]
    found = next(event for event in out if event["type"] == "message_delta")
    assert cutter.done == (found["delta"]["stop_reason"] == "stop_sequence")
    return list(texts.values()), found["delta"]["stop_sequence"]


def by_the_book(text: str, stops: tuple[str, ...]) -> tuple[str, bool]:
    for end in range(len(text) + 1):
        fitting = [stop for stop in stops if text[:end].endswith(stop)]
        if fitting:
            return text[: end - max(map(len, fitting))], True
    return text, False


@given(letters, stop_lists, cut_places)
def test_the_cut_does_not_depend_on_the_pieces(text: str, stops: tuple[str, ...], cuts: list[int]) -> None:
    expected, stopped = by_the_book(text, stops)
    for split in ([text], list(text), pieces(text, cuts)):
        texts, found = cut(answer([[piece for piece in split if piece]]), stops)
        assert (texts, found is not None) == ([expected], stopped)


@given(st.lists(letters, min_size=1, max_size=3), stop_lists)
def test_a_sequence_does_not_reach_over_blocks(blocks: list[str], stops: tuple[str, ...]) -> None:
    texts, found = cut(answer([list(text) for text in blocks]), stops)
    expected = []
    for block in blocks:
        kept, stopped = by_the_book(block, stops)
        expected.append(kept)
        if stopped:
            break
    assert texts == expected
    assert (found is not None) == (by_the_book(blocks[len(expected) - 1], stops)[1])


def test_what_cannot_be_a_beginning_is_passed_on_at_once() -> None:
    cutter = StopSequences(("</block>",), input_tokens=1)
    assert cutter.feed(answer([["<block>no</bl"]])[:3])[-1]["delta"]["text"] == "<block>no"


def test_nothing_follows_the_cut() -> None:
    cutter = StopSequences(("b",), input_tokens=1)
    cutter.feed(answer([["abc"]]))
    assert cutter.done and cutter.feed([{"type": "ping"}]) == []


def test_calls_and_thinking_are_not_searched() -> None:
    blocks = [begun(THINKING), said(thought("stop")), ended()]
    blocks += [begun(CALL, 1), said(typed('{"a":"stop"}'), 1), ended(1)]
    events = whole(*blocks, reason="tool_use")
    assert StopSequences(("stop",), input_tokens=1).feed(events) == events


@rows(
    "value, expected",
    [
        (None, ()),
        ("x", ()),
        ([], ()),
        (["a", 3, "", None, "b"], ("a", "b")),
        (["x" * (MAX_LENGTH + 1), "y"], ("y",)),
        ([str(number) for number in range(99)], tuple(str(number) for number in range(MAX_STOPS))),
    ],
)
def test_usable_sequences(value: Any, expected: tuple[str, ...]) -> None:
    assert stops_of({"stop_sequences": value}) == expected
