"""What the benchmark asks for and what its upstream answers: streams of three wires, of any number of texts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

#: How an answer is played stands in the last message of a request: so many texts, one every so many milliseconds, or
#: all at once. The sandbox, which plays the wires that are a conversation, reads the words behind it.
ASKED = re.compile(rb"PLAY (\d+) TEXTS EVERY (\d+) MS")


def question(texts: int, every_ms: int) -> str:
    """
    >>> asked(question(10, 20).encode())
    (10, 20)
    """
    return f"PLAY {texts} TEXTS EVERY {every_ms} MS: stream {texts} words"


def asked(body: bytes) -> tuple[int, int]:
    """How many texts, and the milliseconds between two. Raises ValueError for a body that says nothing of it."""
    found = ASKED.findall(body)
    if not found:
        raise ValueError("the request is none of the benchmark")
    texts, every_ms = found[-1]
    return int(texts), int(every_ms)


@lru_cache(maxsize=16)
def answer(wire: str, texts: int) -> list[bytes]:
    """The frames of a stream with so many texts; `wire` is the end of its path."""
    return _WIRES[wire]([f"word{number} " for number in range(texts)])


def _chat(words: list[str]) -> list[bytes]:
    def chunk(delta: Mapping[str, Any], finish: str | None = None, **members: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
        return b"data: " + _json({**head, "choices": [choice], **members}) + b"\n\n"

    usage = {"prompt_tokens": 20, "completion_tokens": len(words), "total_tokens": 20 + len(words)}
    return [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": word}) for word in words),
        chunk({}, "stop", usage=usage),
        b"data: [DONE]\n\n",
    ]


def _responses(words: list[str]) -> list[bytes]:
    text = "".join(words)
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "bench", "output": []}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    usage = {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": len(words),
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 20 + len(words),
    }
    begun = {**item, "status": "in_progress", "content": []}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": word, "logprobs": []} for word in words),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    return [_named({**event, "sequence_number": number}) for number, event in enumerate(events)]


def _messages(words: list[str]) -> list[bytes]:
    usage = {"input_tokens": 20, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "bench", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in words),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": len(words)},
        },
        {"type": "message_stop"},
    ]
    return [_named(event) for event in events]


def _named(event: Mapping[str, Any]) -> bytes:
    name: str = event["type"]
    return b"event: " + name.encode() + b"\ndata: " + _json(event) + b"\n\n"


_WIRES = {"/chat/completions": _chat, "/responses": _responses, "/messages": _messages}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
