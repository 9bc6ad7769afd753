"""The parts of a reply as Responses output items, with ids, and what they cost in tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.ids import Ids
from proxy.sandbox.model.pieces import tokens_of
from proxy.sandbox.model.reply import Call, Part, Say, Search, Think
from proxy.sandbox.wires.answer import Block as Item
from proxy.sandbox.wires.encrypted_content import encrypt


class Writer:
    """Makes the items of one answer. `summary`: a thought is shown; `include`: what the request wants in addition."""

    def __init__(self, ids: Ids, account_id: str, *, summary: bool, include: Collection[str]) -> None:
        self.ids = ids
        self.account_id = account_id
        self._summary = summary
        self.include = include

    def item(self, part: Part) -> Item:
        """The finished item of a part."""
        return _WRITERS[type(part)](self, part)

    def encrypt(self, item_id: str, nonce: str) -> str:
        """The encrypted content of a reasoning item; another nonce gives another, just as good."""
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
    """A `url_citation` of the place where the title stands in the text, in characters."""
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
