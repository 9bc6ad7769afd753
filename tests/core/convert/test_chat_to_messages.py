"""The chat reducer: single behaviours, and that no upstream can make it break its promises."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from checks import check_message_stream
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples, rows

from core.hub_events import folded as reply_of
from core.strategies import cut_places, json_objects, members, mostly, pieces, texts
from core.vector_cases import chat_drive
from proxy.core.convert.chat_calls import MAX_CALLS, MAX_LABEL
from proxy.core.convert.chat_to_messages import ChatToMessages
from proxy.core.messages import MAX_HELD_BYTES, Event, MessageStream
from proxy.core.reducer import AnswerPolicy, BadAnswer, CutAnswer
from proxy.core.sse import encode_events

TOOLS = [
    {"name": name, "input_schema": {"type": "object", "properties": {"q": {}, "n": {"type": "integer"}}}}
    for name in ("Task", "TaskList", "Search", "n" * 70)
]


def reducer(**policy: Any) -> ChatToMessages:
    own_id = (lambda number: f"toolu_{number}") if policy.pop("own_ids", False) else None
    stream = MessageStream("msg_1", "m", input_tokens=3)
    return ChatToMessages(stream, AnswerPolicy({"tools": TOOLS}, **policy), mark="m:p2:v1", own_id=own_id)


def ran(
    chunks: Iterable[Mapping[str, Any]], machine: ChatToMessages | None = None, *, done: bool = True
) -> tuple[list[Event], str | None]:
    """All events, and the complaint that ended them if there was one."""
    machine = machine or reducer()
    out: list[Event] = []
    try:
        for chunk in chunks:
            out += machine.feed(chunk)
        return out + machine.end(done=done), None
    except BadAnswer as error:
        return out + machine.interrupt(), str(error)


def folded(events: list[Event]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = reply_of(events)["content"]
    return content


def said(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: Any, arguments: Any = None, call_id: str | None = None, name: str | None = None) -> dict[str, Any]:
    entry = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return said(tool_calls=[entry])


labels = st.sampled_from(["a", "b", "Bash:0", "", "call_"])
names = st.sampled_from(["Task", "List", "TaskList", "Sea", "rch", "Search", "x", "", "n" * 70])
argument_texts = st.sampled_from(
    [
        "",
        " ",
        "{",
        "}",
        "{}",
        '{"q":',
        "1",
        "1}",
        '{"q":1}',
        ',"n":null}',
        "null",
        '"',
        "\\",
        "\ud83d",
        "[1]",
        "x" * 700,
    ]
)
fragments = members(
    index=st.sampled_from([0, 1, 7, -1, None, "0", 2**70]),
    id=labels,
    type=st.just("function"),
    function=members(name=names, arguments=argument_texts | json_objects),
)
deltas = members(
    role=st.just("assistant"),
    content=texts | st.just("t"),
    reasoning_content=texts,
    reasoning=texts,
    tool_calls=st.lists(mostly(fragments), max_size=3),
)
usages = members(
    prompt_tokens=st.integers(-5, 50),
    completion_tokens=st.integers(0, 50),
    cached_tokens=st.integers(0, 90),
    prompt_tokens_details=members(cached_tokens=st.integers(0, 9)),
)
choices = st.fixed_dictionaries(
    {"delta": mostly(deltas)},
    optional={
        "index": mostly(st.just(0)),
        "finish_reason": mostly(st.none()) | st.sampled_from(["stop", "tool_calls", "length", "content_filter", "eos"]),
        "usage": mostly(usages),
    },
)
chunks = st.fixed_dictionaries(
    {"choices": mostly(st.lists(mostly(choices), max_size=2))}, optional={"usage": mostly(usages)}
) | members(error=members(message=texts), id=texts)
streams = st.lists(chunks, max_size=25)
policies = st.sampled_from([{}, {"own_ids": True}, {"restore": str.upper}])


@settings(max_examples=examples(400))
@given(streams, policies, st.booleans())
def test_any_chunks_give_a_legal_stream_or_a_complaint(
    stream: list[dict[str, Any]], policy: dict[str, Any], done: bool
) -> None:
    machine = reducer(**policy)
    out, complaint = ran(stream, machine, done=done)
    check_message_stream(out, hub=True, cut=complaint is not None)
    assert machine.finished == (complaint is None)
    encode_events(out)
    if complaint is not None:
        error = {"type": "error", "error": {"type": "api_error", "message": complaint}}
        check_message_stream([*out, error], cut=True)
    ids = [event["content_block"].get("id") for event in out if event["type"] == "content_block_start"]
    ids = [call_id for call_id in ids if call_id]
    assert len(ids) == len(set(ids))


@settings(max_examples=examples(200))
@given(
    st.lists(fragments.map(lambda entry: said(tool_calls=[entry])), max_size=12), st.sampled_from(["stop", "length"])
)
def test_any_fragments_give_complete_calls_or_a_complaint(stream: list[dict[str, Any]], finish: str) -> None:
    out, complaint = ran([*stream, said(finish)])
    check_message_stream(out, hub=True, cut=complaint is not None)
    if complaint is None:
        assert all(isinstance(block["input"], dict) for block in folded(out))


@given(streams, cut_places)
def test_the_split_of_the_bytes_does_not_matter(stream: list[dict[str, Any]], cuts: list[int]) -> None:
    raw = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in stream) + b"data: [DONE]\n\n"
    context = {"request": {"tools": TOOLS}}
    assert chat_drive(pieces(raw, cuts), context) == chat_drive([raw], context)


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_any_bytes_are_an_answer_or_a_complaint(data: list[bytes]) -> None:
    chat_drive([b"data: " + piece + b"\n\n" for piece in data], {})


@given(json_objects, cut_places, st.booleans())
def test_arguments_arrive_whatever_their_pieces(value: dict[str, Any], cuts: list[int], label_each: bool) -> None:
    body = [
        call(0, piece, "a" if label_each else None, "Other" if label_each else None)
        for piece in pieces(json.dumps(value), cuts)
    ]
    out, complaint = ran([call(0, "", "a", "Other"), *body, said("tool_calls")])
    assert complaint is None
    assert folded(out)[0]["input"] == value


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=30), st.booleans())
def test_calls_in_turns_come_out_whole(order: list[str], by_index: bool) -> None:
    waiting = {name: pieces(json.dumps({"q": name}), [3, 5]) for name in "abc"}
    stream = [call(at if by_index else None, "", name, "Search") for at, name in enumerate("abc")]
    for name in [*order, *"aaabbbccc"]:
        if waiting[name]:
            piece = waiting[name].pop(0)
            stream.append(call("abc".index(name), piece) if by_index else call(None, piece, name))
    out, complaint = ran([*stream, said("tool_calls")])
    assert complaint is None
    assert [(block["id"], block["input"]["q"]) for block in folded(out)] == [(name, name) for name in "abc"]


# -- single behaviours


def test_a_call_streams_as_soon_as_the_one_before_is_complete() -> None:
    machine = reducer()
    machine.feed(call(0, '{"q":1}', "a", "Search"))
    assert [event["type"] for event in machine.feed(call(1, '{"q"', "b", "Search"))] == [
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
    ]


def test_a_call_is_not_closed_before_anything_shows_that_it_is_complete() -> None:
    machine = reducer()
    events = machine.feed(call(0, '{"q":1}', "a", "Search")) + machine.feed(call(0, " "))
    assert "content_block_stop" not in [event["type"] for event in events]


def test_a_long_name_gets_no_shorter() -> None:
    out, _ = ran([call(0, "{}", "a", "n" * 70)])
    assert folded(out)[0]["name"] == "n" * 70


def test_a_structured_answer_is_rewritten_as_a_whole() -> None:
    out, _ = ran([said(reasoning="x"), said(content="a"), said(content="b"), said("stop")], reducer(restore=str.upper))
    assert [block.get("text") for block in folded(out)] == [None, "AB"]


def test_nothing_starts_before_an_error() -> None:
    machine = reducer()
    with pytest.raises(BadAnswer, match="overloaded"):
        machine.feed({"error": "overloaded"})
    assert machine.interrupt() == []


UNREADABLE = [
    *((member, said(**{member: odd})) for member in ("content", "refusal") for odd in (7, True, [1], {"a": 1})),
    *(("tool_calls", said(tool_calls=odd)) for odd in (7, "a", [7], {"a": 1})),
    *(("delta", {"choices": [{"index": 0, "delta": odd}]}) for odd in (7, "a", [1])),
    *(("choices", {"choices": odd}) for odd in (7, "a", [7], {"a": 1})),
]


@rows("member, chunk", UNREADABLE)
def test_what_cannot_be_read_leaves_no_hole(member: str, chunk: dict[str, Any]) -> None:
    """An answer that goes on without it would look complete."""
    out, complaint = ran([said(content="a"), chunk, said("stop")])
    assert complaint is not None and f"`{member}`" in complaint
    assert not any(event["type"] == "message_stop" for event in out)


@rows("nothing", [None, "", []])
@rows("member", ["content", "refusal", "tool_calls"])
def test_members_without_a_value_are_none(member: str, nothing: Any) -> None:
    out, complaint = ran([said(content="a"), said(**{member: nothing}), said("stop")])
    assert complaint is None and [block["text"] for block in folded(out)] == ["a"]


def test_what_waits_is_bounded() -> None:
    big = "x" * (MAX_HELD_BYTES // 4)
    assert "passed" in str(ran([call(0, "{" + big, "a", "Search"), call(0, big)] * 3)[1])
    stream = [call(at, "{" + "x" * 3_000_000, f"c{at}", "Search") for at in range(4)]
    assert "all tool calls" in str(ran(stream)[1])
    assert "wait for an earlier one" in str(ran([call(0, '{"q":', "a", "Search"), *[said(content=big)] * 5])[1])
    assert "structured" in str(ran([said(content=big)] * 5, reducer(restore=str.strip))[1])
    behind = [call(0, '{"q":', "a", "Search"), *[said(content=big)] * 3, said(reasoning="x" + big * 2)]
    assert "wait for" in str(ran(behind, reducer(restore=lambda text: text * 2))[1])


def test_runaway_calls_and_names_are_bounded() -> None:
    assert "more than" in str(ran(call(at, "{}", f"c{at}", "Search") for at in range(MAX_CALLS + 1))[1])
    assert "name or id" in str(ran([call(0, "", None, "ab" * MAX_LABEL)])[1])


def test_an_answer_that_stops_is_told_from_a_bad_one() -> None:
    with pytest.raises(CutAnswer):
        reducer().end(done=False)
    machine = reducer()
    machine.feed(call(0, "{", "a", "Search"))
    machine.feed(said("content_filter"))
    with pytest.raises(BadAnswer) as caught:
        machine.end(done=False)
    assert not isinstance(caught.value, CutAnswer)


def test_a_delta_costs_little() -> None:
    machine = reducer()
    start = time.process_time()
    for number in range(20_000):
        machine.feed(said(content=f"word{number} "))
    machine.feed(call(0, '{"q":"', "a", "Search"))
    for number in range(20_000):
        machine.feed(call(0, f"word{number} }}"))
    assert (time.process_time() - start) / 40_000 < 50e-6
