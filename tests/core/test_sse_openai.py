"""Bytes out of what the OpenAI-style routes send: by hand or not, they are those of plain JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strategies import json_objects
from proxy.core.sse import SSEDecoder, dump_json, encode_data, encode_events

CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": 'm"ö'}
EVENT = {"sequence_number": 3, "item_id": "x_1", "output_index": 2}


def chunk(delta: dict[str, Any], finish: str | None = None, **members: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {**CHUNK, "choices": [choice], **members}


def pieces(text: str) -> list[dict[str, Any]]:
    """Everything that carries a piece of text."""
    part = {"content_index": 0, "delta": text, "logprobs": []}
    return [
        {"type": "response.output_text.delta", **EVENT, **part},
        {"type": "response.reasoning_summary_text.delta", **EVENT, "summary_index": 0, "delta": text},
        {"type": "response.function_call_arguments.delta", **EVENT, "delta": text},
    ]


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    chunks = [chunk({"content": text}), chunk({"reasoning_content": text}, usage=None)]
    assert encode_data(chunks) == b"".join(b"data: %s\n\n" % dump_json(one).encode() for one in chunks)
    frames = SSEDecoder().feed(encode_events(pieces(text)))
    assert [data for _, data in frames] == [dump_json(event).encode() for event in pieces(text)]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"error": {"message": "m", "type": "t"}},
        {"choices": []},
        {**CHUNK, "choices": [], "usage": {"total_tokens": 1}},
        chunk({}, "stop"),
        chunk({"content": "a"}, "stop"),
        chunk({"content": None}),
        chunk({"role": "assistant", "content": ""}, usage=None),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]}),
        chunk({"annotations": []}),
    ],
)
def test_a_value_of_any_shape_comes_back(value: dict[str, Any]) -> None:
    assert encode_data([value]) == b"data: %s\n\n" % dump_json(value).encode()


@given(st.lists(json_objects, max_size=3).map(lambda values: [{"x": value} for value in values]))
def test_values_come_back_in_their_order(values: list[dict[str, Any]]) -> None:
    frames = SSEDecoder().feed(encode_data(values))
    assert [json.loads(data) for _, data in frames] == values
    assert all(name == b"" for name, _ in frames)


def test_half_a_surrogate_pair_is_escaped() -> None:
    """Also in what stands beside it in one write."""
    halves = ["\ud83d", "\ude00"]
    data = encode_data([chunk({"content": half}) for half in ["é", *halves]])
    texts = [json.loads(frame)["choices"][0]["delta"]["content"] for _, frame in SSEDecoder().feed(data)]
    assert texts == ["é", *halves]
    frames = SSEDecoder().feed(encode_events([event for half in halves for event in pieces(half)]))
    assert [json.loads(frame)["delta"] for _, frame in frames] == [halves[0]] * 3 + [halves[1]] * 3
