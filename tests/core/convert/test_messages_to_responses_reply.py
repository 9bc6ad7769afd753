"""Messages events to Responses events and the response: the rules; whole answers stand on disk."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_sdk import read_response, read_response_events
from openai_streams import check_response_events

from core.reply_cases import ID, answer, answers, batches, responses_reply, responses_result
from core.strategies import cut_places
from proxy.core.ingress import Ingress
from proxy.core.messages import PING, Event
from proxy.core.reducer import BadAnswer
from proxy.core.token_usage import usage_of

CITATION = {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": ""}
ANNOTATION = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 0}


def response_of(events: list[Event], ingress: Ingress | None = None) -> dict[str, Any]:
    reply = responses_reply(ingress)
    assert check_response_events(reply.feed(events)) == reply.response
    assert reply.finished
    return reply.response


@pytest.mark.parametrize(
    ("stop", "status", "reason"),
    [
        ("end_turn", "completed", None),
        ("stop_sequence", "completed", None),
        ("pause_turn", "completed", None),
        (None, "completed", None),
        ("of tomorrow", "completed", None),
        ("tool_use", "completed", None),
        ("max_tokens", "incomplete", "max_output_tokens"),
        ("model_context_window_exceeded", "incomplete", "max_output_tokens"),
        ("refusal", "incomplete", "content_filter"),
    ],
)
def test_status(stop: Any, status: str, reason: str | None) -> None:
    reply = responses_reply()
    [*_, last] = reply.feed(answer(("text", "a"), stop=stop))
    assert last["type"] == f"response.{status}"
    assert reply.response["status"] == status
    assert reply.response["incomplete_details"] == ({"reason": reason} if reason else None)


MESSAGE = {"type": "message", "status": "completed", "role": "assistant"}


@pytest.mark.parametrize(
    ("block", "prefix", "expected"),
    [
        (
            ("text", "a", CITATION, "b"),
            "msg",
            {
                **MESSAGE,
                "content": [{"type": "output_text", "text": "ab", "annotations": [ANNOTATION], "logprobs": []}],
            },
        ),
        (
            ("text", CITATION),
            "msg",
            {
                **MESSAGE,
                "content": [{"type": "output_text", "text": "", "annotations": [ANNOTATION], "logprobs": []}],
            },
        ),
        (
            ("thinking", "a", "b"),
            "rs",
            {"type": "reasoning", "status": "completed", "summary": [{"type": "summary_text", "text": "ab"}]},
        ),
        (
            ("call", "c", "f", "{}"),
            "fc",
            {"type": "function_call", "status": "completed", "call_id": "c", "name": "f", "arguments": "{}"},
        ),
        (
            ("call", "c", "ns__g"),
            "fc",
            {
                "type": "function_call",
                "status": "completed",
                "call_id": "c",
                "namespace": "ns",
                "name": "g",
                "arguments": "{}",
            },
        ),
        (
            ("search", "rust"),
            "ws",
            {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "rust"}},
        ),
        (
            ("search", None),
            "ws",
            {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": ""}},
        ),
    ],
)
def test_what_a_block_becomes(block: tuple[Any, ...], prefix: str, expected: dict[str, Any]) -> None:
    ingress = Ingress({}, namespaces={"ns__g": ("ns", "g")})
    [_, item] = response_of(answer(("text", "first"), block), ingress)["output"]
    assert item == {"id": f"{prefix}_{ID}_1", **expected}


@pytest.mark.parametrize("block", [("text",), ("text", ""), ("thinking",), ("thinking", ""), ("links",)])
def test_what_stays_empty_or_hidden_is_no_item(block: tuple[Any, ...]) -> None:
    [item] = response_of(answer(block, ("text", "a")))["output"]
    assert item["id"] == f"msg_{ID}_1"


#: What a kind of block says, without `response.`, in this order.
SEQUENCES = [
    (
        ("text", "a", CITATION, "b"),
        [
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.annotation.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
        ],
    ),
    (
        ("thinking", "a"),
        [
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
        ],
    ),
    (
        ("call", "c", "f", "{}"),
        [
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
        ],
    ),
    (
        ("search", "rust"),
        [
            "output_item.added",
            "web_search_call.in_progress",
            "web_search_call.searching",
            "web_search_call.completed",
            "output_item.done",
        ],
    ),
]


@pytest.mark.parametrize(("block", "expected"), SEQUENCES)
def test_the_order_of_events(block: tuple[Any, ...], expected: list[str]) -> None:
    kinds = [event["type"].removeprefix("response.") for event in responses_reply().feed(answer(block))]
    assert kinds == ["created", "in_progress", *expected, "completed"]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ({"input_tokens": 5, "cache_read_input_tokens": 20}, {"output_tokens": 7}, (25, 20, 0, 7, 32)),
        ({"input_tokens": 9}, usage_of(3, 7, cache_read=20, cache_creation=4), (27, 20, 4, 7, 34)),
        (None, None, (0, 0, 0, 0, 0)),
    ],
)
def test_usage(start: Any, end: Any, expected: tuple[int, ...]) -> None:
    events = answer(("text", "a"))
    events[0]["message"]["usage"], events[-2]["usage"] = start, end
    usage = response_of(events)["usage"]
    details = usage["input_tokens_details"]
    found = (usage["input_tokens"], details["cached_tokens"], details["cache_write_tokens"], usage["output_tokens"])
    assert (*found, usage["total_tokens"]) == expected
    assert usage["output_tokens_details"] == {"reasoning_tokens": 0}


def test_the_request_is_repeated_in_every_response_object() -> None:
    echo = {"tools": [{"type": "web_search"}], "tool_choice": "required", "parallel_tool_calls": False}
    out = responses_reply(Ingress({}, echo=echo)).feed(answer())
    objects = [event["response"] for event in out]
    assert len(objects) == 3
    assert all(echo.items() <= response.items() for response in objects)
    for response in objects:
        read_response(response)


def test_what_the_request_left_out_has_its_default() -> None:
    response = response_of(answer())
    assert (response["tools"], response["tool_choice"], response["parallel_tool_calls"]) == ([], "auto", True)
    assert (response["store"], response["truncation"], response["metadata"]) == (False, "disabled", {})


def test_the_beginning_comes_once_whatever_the_first_batch_holds() -> None:
    reply = responses_reply()
    first = reply.feed([PING])
    assert [event["type"] for event in first] == ["response.created", "response.in_progress"]
    assert reply.feed([PING]) == []
    rest = reply.feed(answer(("text", "a")))
    assert [*first, *rest] == responses_reply().feed(answer(("text", "a")))


def test_a_silence_is_numbered_like_everything() -> None:
    reply, events = responses_reply(), answer(("text", "a"))
    out = [*reply.feed([PING]), reply.keepalive(), *reply.feed(events[:3]), reply.keepalive(), *reply.feed(events[3:])]
    assert out[2] == {"type": "keepalive", "sequence_number": 2}
    check_response_events(out)


def test_a_failure_ends_the_stream_with_what_was_whole() -> None:
    reply = responses_reply()
    out = reply.feed(answer(("text", "a"), ("text", "b"))[:6])
    out += reply.fail("rate_limit_exceeded", "try again in 3s")
    response = check_response_events(out)
    assert response is not None and response is not reply.response and response == reply.response
    assert response["error"] == {"code": "rate_limit_exceeded", "message": "try again in 3s"}
    assert [item["content"][0]["text"] for item in response["output"]] == ["a"]
    assert reply.finished and reply.fail("server_error", "again") == []


def test_a_failure_before_everything_has_a_beginning() -> None:
    out = responses_reply().fail("server_error", "m")
    assert [event["type"] for event in out] == ["response.created", "response.in_progress", "response.failed"]
    check_response_events(out)


def test_a_failure_cannot_follow_the_end() -> None:
    reply = responses_reply()
    reply.feed(answer())
    assert reply.fail("server_error", "m") == [] and reply.response["status"] == "completed"


def test_what_stood_before_a_fault_in_its_batch_comes_with_the_failure() -> None:
    reply = responses_reply()
    events = answer(("text", "a"))
    with pytest.raises(BadAnswer, match="unknown event"):
        reply.feed([*events[:3], {"type": "surprise"}])
    out = reply.fail("server_error", "m")
    assert "response.output_text.delta" in [event["type"] for event in out]
    check_response_events(out)


@pytest.mark.parametrize("arguments", [[], ['{"a":', '"b']])
def test_a_cut_call_is_an_incomplete_item(arguments: list[str]) -> None:
    response = response_of(answer(("text", "a"), ("cut", "c", "f", *arguments), stop="max_tokens"))
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    call = response["output"][1]
    assert (call["status"], call["arguments"]) == ("incomplete", "".join(arguments))


@given(answers, cut_places, st.booleans())
def test_any_answer_in_any_batches(events: list[Event], cuts: list[int], silent: bool) -> None:
    ingress = Ingress({}, namespaces={"ns__g": ("ns", "g")})
    out, response = responses_result([events], ingress)
    assert check_response_events(out) == response
    completed = read_response_events(out)
    assert (completed is not None) == (response["status"] == "completed")
    assert responses_result(batches(events, cuts), ingress) == (out, response)
    if silent:
        reply = responses_reply(ingress)
        noisy = reply.feed([PING])
        for piece in batches(events, cuts):
            noisy += [reply.keepalive(), *reply.feed(piece)] if not reply.finished else []
        check_response_events(noisy)
