"""Converts whole answers, which some gateways send in place of a stream, to the events of a stream.

Each function takes the JSON object of such an answer and returns events for the reducer of its wire, or None if it is
no answer of that wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Event = dict[str, Any]


def chat_events(answer: Mapping[str, Any]) -> list[Event] | None:
    """The events of a `chat.completion`: one chunk. The end of the stream is not included."""
    choices = answer.get("choices")
    if not isinstance(choices, list):
        return None
    chunks = [_chat_choice(choice) if isinstance(choice, Mapping) else choice for choice in choices]
    return [{**answer, "choices": chunks}]


def _chat_choice(choice: Mapping[str, Any]) -> Event:
    message = choice.get("message")
    if not isinstance(message, Mapping):
        return dict(choice)
    calls = message.get("tool_calls")
    numbered = [
        {**call, "index": index} if isinstance(call, Mapping) else call
        for index, call in enumerate(calls if isinstance(calls, list) else ())
    ]
    return {**choice, "delta": {**message, "tool_calls": numbered}}


def message_events(answer: Mapping[str, Any]) -> list[Event] | None:
    """The events of a Messages answer, whose blocks have all their content in their start."""
    content = answer.get("content")
    if not isinstance(content, list):
        return None
    blocks: list[Event] = []
    for index, block in enumerate(content):
        blocks.append({"type": "content_block_start", "index": index, "content_block": block})
        blocks.append({"type": "content_block_stop", "index": index})
    delta = {name: answer.get(name) for name in ("stop_reason", "stop_sequence")}
    last = {"type": "message_delta", "delta": delta, "usage": answer.get("usage")}
    return [{"type": "message_start", "message": answer}, *blocks, last, {"type": "message_stop"}]


#: status of a response -> the event that ends its stream
_ENDS = {"incomplete": "response.incomplete", "failed": "response.failed"}


def response_events(answer: Mapping[str, Any]) -> list[Event] | None:
    """The events of a response object, whose items are all done."""
    output = answer.get("output")
    if not isinstance(output, list):
        return None
    items = [
        {"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(output)
    ]
    end = _ENDS.get(str(answer.get("status")), "response.completed")
    return [*items, {"type": end, "response": answer}]
