"""Output items to the sequence of Responses events in which the backend tells them.

response.created, response.in_progress
for each item: response.output_item.added, the item's own events, response.output_item.done
response.completed, with all items and the usage
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from proxy.sandbox.model.pieces import pieces, words
from proxy.sandbox.wires.answer import Block, Event


def item_events(item: Block, index: int, *, early_action: bool = False) -> list[Event]:
    """The events of one item at `output_index` index. `early_action`: what is searched for is told at once."""
    inner = _ITEM_EVENTS.get(item["type"])
    started = {**item, "status": "in_progress", **_EMPTIED.get(item["type"], {})}
    if item["type"] in ("reasoning", "compaction"):
        started.pop("status")
        if item["type"] == "reasoning":
            # the early copy of a reasoning item has encrypted content as well, but the late one counts
            started["summary"] = []
    if not early_action:
        started.pop("action", None)
    return [
        {"type": "response.output_item.added", "output_index": index, "item": started},
        *(inner(item, index) if inner else ()),
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


#: What an item lacks while it is being made.
_EMPTIED: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}


def _message(item: Block, index: int) -> Iterator[Event]:
    for place, part in enumerate(item["content"]):
        where = {"item_id": item["id"], "output_index": index, "content_index": place}
        refusal = part["type"] == "refusal"
        empty = {"type": "refusal", "refusal": ""} if refusal else {**part, "text": "", "annotations": []}
        yield {"type": "response.content_part.added", **where, "part": empty}
        yield from _refusal(part, where) if refusal else _text(part, where)
        yield {"type": "response.content_part.done", **where, "part": part}


def _text(part: Block, where: dict[str, Any]) -> Iterator[Event]:
    for word in words(part["text"]):
        yield {"type": "response.output_text.delta", **where, "delta": word, "logprobs": []}
    for place, annotation in enumerate(part["annotations"]):
        yield {
            "type": "response.output_text.annotation.added",
            **where,
            "annotation_index": place,
            "annotation": annotation,
        }
    yield {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []}


def _refusal(part: Block, where: dict[str, Any]) -> Iterator[Event]:
    for word in words(part["refusal"]):
        yield {"type": "response.refusal.delta", **where, "delta": word}
    yield {"type": "response.refusal.done", **where, "refusal": part["refusal"]}


def _reasoning(item: Block, index: int) -> Iterator[Event]:
    for place, part in enumerate(item["summary"]):
        where = {"item_id": item["id"], "output_index": index, "summary_index": place}
        yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
        for word in words(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **where, "delta": word}
        yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **where, "part": part}


def _payload(prefix: str, name: str) -> Callable[[Block, int], Iterator[Event]]:
    """The events of a call: its payload in pieces, then whole."""

    def events(item: Block, index: int) -> Iterator[Event]:
        where = {"item_id": item["id"], "output_index": index}
        for piece in pieces(item[name]):
            yield {"type": f"{prefix}.delta", **where, "delta": piece}
        yield {"type": f"{prefix}.done", **where, name: item[name]}

    return events


def _search(item: Block, index: int) -> Iterator[Event]:
    for state in ("in_progress", "searching", "completed"):
        yield {"type": f"response.web_search_call.{state}", "item_id": item["id"], "output_index": index}


_ITEM_EVENTS: dict[str, Callable[[Block, int], Iterator[Event]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _payload("response.function_call_arguments", "arguments"),
    "custom_tool_call": _payload("response.custom_tool_call_input", "input"),
    "web_search_call": _search,
}
