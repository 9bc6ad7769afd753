"""The parts of a reply as Responses output items, their tokens, and their events.

response.created, response.in_progress for each item: response.output_item.added, the item's own events,
response.output_item.done response.completed, with all items and the usage
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.model.pieces import pieces, tokens_of, words
from proxy.sandbox.model.reply import Call, Part, Say, Search, Think
from proxy.sandbox.wires.answer import Block, Event, Ids
from proxy.sandbox.wires.answer import Block as Item
from proxy.sandbox.wires.encrypted_content import encrypt


class Writer:
    """Makes the items of one answer. `summary`: thoughts are shown; `include`: what the request wants in addition."""

    def __init__(self, ids: Ids, account_id: str, *, summary: bool, include: Collection[str]) -> None:
        self.ids = ids
        self.account_id = account_id
        self._summary = summary
        self.include = include

    def item(self, part: Part) -> Item:
        """The finished item of a part."""
        return _WRITERS[type(part)](self, part)

    def encrypt(self, item_id: str, nonce: str) -> str:
        """The encrypted content of a reasoning item; another nonce gives another, equally valid one."""
        return encrypt(self.account_id, item_id, nonce)

    def think(self, part: Think) -> Item:
        """`{"type":"reasoning","id","summary":[{"type":"summary_text","text"}],"encrypted_content"?}`"""
        item_id = self.ids.new("rs")
        shown = part.paragraphs if self._summary else ()
        item: Item = {
            "id": item_id,
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": paragraph} for paragraph in shown],
        }
        if "reasoning.encrypted_content" in self.include:
            item["encrypted_content"] = self.encrypt(item_id, "done")
        return item

    def message(self, text: str, annotations: Sequence[dict[str, Any]] = ()) -> Item:
        """`{"type":"message","id","role":"assistant","status","content":[{"type":"output_text",…}]}`"""
        part = {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}
        return {
            "id": self.ids.new("msg"),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }

    def refusal(self, text: str) -> Item:
        return {**self.message(""), "content": [{"type": "refusal", "refusal": text}]}

    def call(self, part: Call) -> Item:
        """A `function_call`, or a `custom_tool_call` for a freeform tool."""
        tool, arguments = part.tool, part.arguments
        kind = ("ctc", "custom_tool_call", "input") if tool.freeform else ("fc", "function_call", "arguments")
        prefix, name, payload = kind
        item: Item = {
            "id": self.ids.new(prefix),
            "type": name,
            "status": "completed",
            payload: arguments if isinstance(arguments, str) else dump_json(arguments),
            "call_id": self.ids.new("call"),
            "name": tool.name,
        }
        if tool.namespace not in (None, "functions"):
            item["namespace"] = tool.namespace
        return item

    def compaction(self) -> Item:
        item_id = self.ids.new("cmp")
        return {"id": item_id, "type": "compaction", "encrypted_content": self.encrypt(item_id, "")}

    def search(self, part: Search) -> Item:
        action: dict[str, Any] = {"type": "search", "query": part.query}
        if "web_search_call.action.sources" in self.include:
            action["sources"] = [{"type": "url", "url": page.url} for page in part.pages]
        return {"id": self.ids.new("ws"), "type": "web_search_call", "status": "completed", "action": action}

    def say(self, part: Say) -> Item:
        return self.message(part.text, [_citation(part.text, page.title, page.url) for page in part.pages])


def _citation(text: str, title: str, url: str) -> dict[str, Any]:
    """A `url_citation` of the title's place in the text, in characters."""
    start = max(text.find(title), 0)
    return {
        "type": "url_citation",
        "url": url,
        "title": title,
        "start_index": start,
        "end_index": start + len(title),
    }


_WRITERS: dict[type, Callable[[Writer, Any], Item]] = {
    Think: lambda writer, part: writer.think(part),
    Say: lambda writer, part: writer.say(part),
    Call: lambda writer, part: writer.call(part),
    Search: lambda writer, part: writer.search(part),
}


def usage_of(items: Sequence[Item], input_tokens: int, cached_tokens: int) -> dict[str, Any]:
    """The `usage` object of a response. Hidden reasoning is part of the output."""
    thought = sum(tokens_of(dump_json(item)) for item in items if item["type"] == "reasoning")
    shown = sum(tokens_of(_visible(item)) for item in items if item["type"] != "reasoning")
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": cached_tokens, "cache_write_tokens": 0},
        "output_tokens": thought + shown,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": input_tokens + thought + shown,
    }


def _visible(item: Item) -> str:
    if item["type"] == "message":
        return "".join(part.get("text") or part.get("refusal") or "" for part in item["content"])
    return "".join(str(item.get(name, "")) for name in ("name", "arguments", "input"))


def item_events(item: Block, index: int, *, early_action: bool = False) -> list[Event]:
    """The events of one item at `output_index` index. `early_action`: the searched term comes at once."""
    inner = _ITEM_EVENTS.get(item["type"])
    started = {**item, "status": "in_progress", **_EMPTIED.get(item["type"], {})}
    if item["type"] in ("reasoning", "compaction"):
        started.pop("status")
        if item["type"] == "reasoning":
            # the early copy of a reasoning item also has encrypted content, but the late one counts
            started["summary"] = []
    if not early_action:
        started.pop("action", None)
    return [
        {"type": "response.output_item.added", "output_index": index, "item": started},
        *(inner(item, index) if inner else ()),
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


#: Members that are empty while an item is being made.
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
