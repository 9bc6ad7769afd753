"""The checkers of OpenAI-style streams must be able to refuse."""

from __future__ import annotations

import copy
import functools
import operator
from typing import Any

import pytest
from checks import IllegalStream
from core.reply_cases import answer, chat_reply, responses_reply
from openai_streams import check_chat_chunks, check_response_events
from samples import rows

from proxy.core.ingress import Ingress

CITATION = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}
ANSWER = answer(
    ("thinking", "t"), ("text", "a", CITATION), ("search", "q"), ("call", "c1", "f", "{}"), ("call", "c2", "g", "{}")
)
EVENTS = responses_reply().feed(ANSWER)
CHUNKS = chat_reply(Ingress({}, include_usage=True)).feed(ANSWER)


def renumbered(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def at(kind: str, nth: int = 0) -> int:
    return [number for number, event in enumerate(EVENTS) if event["type"] == f"response.{kind}"][nth]


#: kind of an event -> members that may not have these values; the third element tells which event of the kind
WRONG: dict[str, tuple[tuple[Any, ...], ...]] = {
    "created": (("response.id", "resp_x"), ("response.usage", {})),
    "in_progress": (("response.status", "completed"),),
    "output_item.added": (
        *(("output_index", 1), ("item.id", EVENTS[at("output_item.added", 1)]["item"]["id"])),
        *(("item.call_id", "c1", 4), ("item.status", "completed"), ("item.arguments", "{}", 3)),
    ),
    "output_text.delta": (
        *(("item_id", "msg_x"), ("content_index", 1), ("delta", "b"), ("delta", ""), ("error", {"message": "m"})),
    ),
    "output_text.annotation.added": (("annotation_index", 1), ("annotation", {})),
    "content_part.added": (("part.text", "a"),),
    "content_part.done": (("part.text", "b"),),
    "reasoning_summary_text.done": (("summary_index", None),),
    "function_call_arguments.done": (("arguments", "{} "),),
    "output_item.done": (
        *(("item.id", "rs_x"), ("item.name", "h", 3), ("item.summary", [])),
        *(("item.status", "in_progress"), ("item.status", "incomplete", 4)),
    ),
    "completed": (
        *(("response.id", "resp_x"), ("response.output", []), ("response.usage", None), ("response.status", "failed")),
        *(("response.error", {"code": "x", "message": "m"}), ("response.incomplete_details", {"reason": "x"})),
    ),
}


@rows("kind, row", [(kind, row) for kind in WRONG for row in WRONG[kind]])
def test_no_member_of_an_event_may_be_wrong(kind: str, row: tuple[Any, ...]) -> None:
    path, value, *nth = row
    events = copy.deepcopy(EVENTS)
    *parents, last = path.split(".")
    functools.reduce(operator.getitem, parents, events[at(kind, *nth)])[last] = value
    with pytest.raises(IllegalStream):
        check_response_events(events)


def test_the_streams_are_legal_as_they_are() -> None:
    assert check_response_events(EVENTS) == EVENTS[-1]["response"]
    assert check_chat_chunks(CHUNKS, include_usage=True)["usage"] == CHUNKS[-1]["usage"]


@rows("number", range(len(EVENTS)))
def test_no_event_may_be_missing_or_come_twice(number: int) -> None:
    """Neither when the numbers show it, nor when they do not."""
    missing = [event for index, event in enumerate(EVENTS) if index != number]
    twice = [*EVENTS[: number + 1], *EVENTS[number:]]
    for events in (missing, renumbered(missing), renumbered(twice)):
        with pytest.raises(IllegalStream):
            check_response_events(events)


@rows("number", [number for number in range(len(CHUNKS)) if number])
def test_no_chunk_may_come_before_the_role_or_behind_the_end(number: int) -> None:
    for chunks in ([CHUNKS[number], *CHUNKS], [*CHUNKS, CHUNKS[number]]):
        with pytest.raises(IllegalStream):
            check_chat_chunks(chunks, include_usage=True)


def with_delta(delta: dict[str, Any]) -> list[dict[str, Any]]:
    """The stream with this delta before its end."""
    choice = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}
    return [*CHUNKS[:-2], {**CHUNKS[0], "choices": [choice]}, *CHUNKS[-2:]]


@rows(
    "delta",
    [
        {"role": "assistant"},
        {},
        {"content": ""},
        {"content": "a", "reasoning_content": "b"},
        {"of_tomorrow": "a"},
        {"annotations": [{"index": 3, "type": "url_citation", "url_citation": {}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]},
        {"tool_calls": [{"index": 1, "id": "c2", "function": {"arguments": "x"}}]},
        {"tool_calls": [{"index": 2, "function": {"arguments": "x"}}]},
        {"tool_calls": [{"index": 2, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 2, "id": "c3", "type": "function", "function": {"name": "f", "arguments": "{"}}]},
    ],
)
def test_no_chunk_may_say_this(delta: dict[str, Any]) -> None:
    check_chat_chunks(with_delta({"content": "a"}), include_usage=True)
    with pytest.raises(IllegalStream):
        check_chat_chunks(with_delta(delta), include_usage=True)


def test_a_chat_stream_has_its_end_and_its_usage_as_asked() -> None:
    for chunks, include_usage in ((CHUNKS[:-1], True), (CHUNKS[:-2], True), (CHUNKS, False)):
        with pytest.raises(IllegalStream):
            check_chat_chunks(chunks, include_usage=include_usage)
    other = [{**CHUNKS[-2], "id": "chatcmpl-x"}]
    with pytest.raises(IllegalStream):
        check_chat_chunks([*CHUNKS[:-2], *other, CHUNKS[-1]], include_usage=True)
