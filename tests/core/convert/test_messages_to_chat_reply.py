"""Messages events to chat chunks and the completion: the rules; whole answers stand on disk."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from openai_sdk import read_chunks
from openai_streams import check_chat_chunks

from core.reply_cases import answer, answers, batches, chat_reply
from core.strategies import cut_places
from proxy.core.ingress import Ingress
from proxy.core.messages import Event
from proxy.core.reducer import BadAnswer
from proxy.core.token_usage import usage_of

WITH_USAGE = Ingress({}, include_usage=True)
CITATION = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}


def deltas(events: list[Event], ingress: Ingress | None = None) -> list[Any]:
    """What the chunks between the role and the end say."""
    chunks = chat_reply(ingress).feed(events)
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]][1:-1]


def message_of(events: list[Event]) -> dict[str, Any]:
    reply = chat_reply()
    reply.feed(events)
    message: dict[str, Any] = reply.completion["choices"][0]["message"]
    return message


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        (None, "stop"),
        ("of tomorrow", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_finish_reason(stop: Any, finish: str) -> None:
    reply = chat_reply()
    [*_, last] = reply.feed(answer(("text", "a"), stop=stop))
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": finish, "logprobs": None}]
    assert reply.completion["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (("text", "a", "", "b"), [{"content": "a"}, {"content": "b"}]),
        (("thinking", "a"), [{"reasoning_content": "a"}]),
        (("search", "rust"), []),
        (("links",), []),
        (
            ("call", "c", "f", '{"a":', "1}"),
            [
                {
                    "tool_calls": [
                        {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
                    ]
                },
                {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
                {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
            ],
        ),
        (
            ("call", "c", "f"),
            [
                {
                    "tool_calls": [
                        {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
                    ]
                },
                {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
            ],
        ),
    ],
)
def test_what_a_block_becomes(block: tuple[Any, ...], expected: list[Any]) -> None:
    assert deltas(answer(block)) == expected


def test_calls_are_counted_and_blocks_are_not() -> None:
    said = deltas(answer(("text", "a"), ("call", "c1", "f", "{}"), ("thinking", "b"), ("call", "c2", "g", "{}")))
    assert [delta["tool_calls"][0]["index"] for delta in said if "tool_calls" in delta] == [0, 0, 1, 1]


def test_arguments_of_blanks_alone_are_an_object_too() -> None:
    call = message_of(answer(("call", "c", "f", " ", "\n"), stop="tool_use"))["tool_calls"][0]
    assert call["function"]["arguments"] == " \n{}"


@pytest.mark.parametrize(
    ("citation", "expected"),
    [
        ({**CITATION, "start_index": 1, "end_index": 2}, ("https://a.example", "A", 4, 5)),
        ({**CITATION, "start_index": 0, "end_index": 2}, ("https://a.example", "A", 3, 5)),
        (CITATION, ("https://a.example", "A", 0, 0)),
        ({"url": None, "title": 7, "start_index": "1", "end_index": True}, ("", "", 0, 0)),
        ({}, ("", "", 0, 0)),
    ],
)
def test_citations_have_their_place_in_the_whole_content(citation: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """The places that a provider names are those in one block; `content` is all of them together."""
    events = answer(("text", "one"), ("text", "two", citation))
    [annotation] = message_of(events)["annotations"]
    assert tuple(annotation["url_citation"].values()) == expected
    [delta] = [delta for delta in deltas(events) if "annotations" in delta]
    assert delta["annotations"] == [{"index": 0, **annotation}]


def test_the_completion_has_only_members_with_something_to_say() -> None:
    assert message_of(answer()) == {"role": "assistant", "content": None, "refusal": None}
    assert set(message_of(answer(("thinking", "a"), ("call", "c", "f")))) == {
        "role",
        "content",
        "refusal",
        "reasoning_content",
        "tool_calls",
    }


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ({"input_tokens": 5, "cache_read_input_tokens": 20}, {"output_tokens": 7}, (25, 20, 7, 32)),
        ({"input_tokens": 9}, usage_of(3, 7, cache_read=20, cache_creation=4), (27, 20, 7, 34)),
        ({"input_tokens": 9, "output_tokens": 1}, {"input_tokens": None, "output_tokens": -3}, (9, 0, 1, 10)),
        (None, None, (0, 0, 0, 0)),
    ],
)
def test_usage(start: Any, end: Any, expected: tuple[int, ...]) -> None:
    events = answer(("text", "a"))
    events[0]["message"]["usage"], events[-2]["usage"] = start, end
    reply = chat_reply(WITH_USAGE)
    [*_, finish, last] = reply.feed(events)
    usage = last["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert (usage["prompt_tokens"], cached, usage["completion_tokens"], usage["total_tokens"]) == expected
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 0}
    assert last["choices"] == [] and finish["usage"] is None
    assert reply.completion["usage"] == usage


def test_without_being_asked_no_chunk_has_a_usage() -> None:
    assert not any("usage" in chunk for chunk in chat_reply().feed(answer(("text", "a"))))


def test_a_cut_call_keeps_what_came_of_it() -> None:
    reply = chat_reply()
    reply.feed(answer(("cut", "c1", "f", '{"a":'), stop="max_tokens"))
    [choice] = reply.completion["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"a":'


def test_nothing_is_said_behind_the_end() -> None:
    reply = chat_reply()
    events = answer(("text", "a"))
    reply.feed(events)
    assert reply.finished and reply.feed(events) == []


@given(answers, cut_places)
def test_any_answer_in_any_batches(events: list[Event], cuts: list[int]) -> None:
    reply = chat_reply(WITH_USAGE)
    chunks = reply.feed(events)
    assert check_chat_chunks(chunks, include_usage=True) == reply.completion
    read_chunks(chunks)
    again = chat_reply(WITH_USAGE)
    assert [chunk for piece in batches(events, cuts) for chunk in again.feed(piece)] == chunks


def test_an_open_call_at_a_good_end_is_a_broken_answer() -> None:
    with pytest.raises(BadAnswer):
        chat_reply().feed(answer(("cut", "c1", "f", "{}"), stop="end_turn"))
