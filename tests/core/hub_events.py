"""Messages events, written short; and the content that they fold into."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from checks import check_message_stream

from proxy.core.messages import Event, Fold

Block = dict[str, Any]

TEXT: Block = {"type": "text", "text": ""}
THINKING: Block = {"type": "thinking", "thinking": "", "signature": ""}
CALL: Block = {"type": "tool_use", "id": "c", "name": "Bash", "input": {}}
SEARCH: Block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}


def begun(block: Any, index: Any = 0) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def said(delta: Any, index: Any = 0) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def ended(index: Any = 0) -> Event:
    return {"type": "content_block_stop", "index": index}


def text(value: Any) -> Block:
    return {"type": "text_delta", "text": value}


def thought(value: Any) -> Block:
    return {"type": "thinking_delta", "thinking": value}


def signed(value: Any) -> Block:
    return {"type": "signature_delta", "signature": value}


def typed(value: Any) -> Block:
    """A piece of the input of a call."""
    return {"type": "input_json_delta", "partial_json": value}


def cited(value: Any) -> Block:
    return {"type": "citations_delta", "citation": value}


def answer(*blocks: Event, reason: Any = "end_turn", **usage: Any) -> list[Event]:
    """A whole answer with these events of its blocks, as a Messages service streams it."""
    message = {"id": "up", "type": "message", "role": "assistant", "model": "other", "content": [], "stop_reason": None}
    message |= {"stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 0}}
    end = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        *blocks,
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 3, **usage}},
        {"type": "message_stop"},
    ]


def folded(events: Iterable[Event]) -> Block:
    """The reply that a legal stream of ours adds up to."""
    events = list(events)
    check_message_stream(events, hub=True)
    fold = Fold()
    for event in events:
        fold.add([event])
    assert fold.complete
    return fold.message
