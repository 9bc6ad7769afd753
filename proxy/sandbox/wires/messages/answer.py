"""Reads a checked Messages body as an `Ask`, and makes one answer in Messages events.

message_start, ping for each block: content_block_start, its deltas, content_block_stop message_delta with stop reason
and usage, message_stop

Faults alter the normal answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from proxy.core.sse import dump_json
from proxy.sandbox.model.pieces import estimate_tokens, pieces, tokens_of, words
from proxy.sandbox.model.reply import Ask, Call, Called, Entry, Part, Returned, Said, Say, Think, Tool
from proxy.sandbox.play.actions import NAMED, Action, Framing
from proxy.sandbox.wires.answer import Answer, Block, Event, Ids
from proxy.sandbox.wires.encrypted_content import encrypt


def read_messages(body: Mapping[str, Any]) -> Ask:
    """The request for the model, which thinks when `thinking` says so, at any effort."""
    choice = body.get("tool_choice") or {"type": "auto"}
    choices = {"any": "required", "tool": choice.get("name", "")}
    thinking = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    config = body.get("output_config") or {}
    return Ask(
        entries=[entry for message in body["messages"] for entry in _entries(message)],
        system=_text(body.get("system") or ""),
        tools=[Tool(tool["name"], tool["input_schema"]) for tool in body.get("tools") or ()],
        choice=choices.get(choice["type"], choice["type"]),
        parallel=not choice.get("disable_parallel_tool_use"),
        effort=config.get("effort", "high") if thinking else None,
        schema=(config.get("format") or {}).get("schema"),
    )


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """A rough count of the request's tokens."""
    return estimate_tokens(body.get("system"), body.get("messages"), body.get("tools"))


def prompt_parts(body: Mapping[str, Any]) -> list[Any]:
    """The request in the order in which the model reads it."""
    system = body.get("system") or ()
    return [*(body.get("tools") or ()), *([system] if isinstance(system, str) else system), *body["messages"]]


def _entries(message: Mapping[str, Any]) -> list[Entry]:
    """Calls and results; the message's text is one entry after the results and before the calls."""
    content = message["content"]
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    results: list[Entry] = []
    calls: list[Entry] = []
    for block in blocks:
        if block["type"] == "tool_result":
            inner = block.get("content") or ""
            results.append(Returned(block["tool_use_id"], _text(inner), _images(inner)))
        elif block["type"] == "tool_use":
            calls.append(Called(block["id"], block["name"]))
    text, images = _text(blocks), _images(blocks)
    said: list[Entry] = [Said(message["role"], text, images)] if text or images else []
    return [*results, *said, *calls]


def _text(content: Any) -> str:
    """The texts joined by line ends."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _images(content: Any) -> tuple[str, ...]:
    if isinstance(content, str):
        return ()
    sources = [block["source"] for block in content if block["type"] == "image"]
    return tuple(source["media_type"] if source["type"] == "base64" else "url" for source in sources)


_KINDS = {"thinking_delta": "thinking", "text_delta": "text", "input_json_delta": "call"}

#: Block -> members that are empty at its start.
_EMPTIED: dict[str, Block] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}


@dataclass(kw_only=True)
class MessagesAnswer(Answer):
    """The answer. Blocks are those of the finished content."""

    framing: ClassVar[Framing] = NAMED
    opening: ClassVar[int] = 2
    call_type: ClassVar[str] = "tool_use"
    thought_type: ClassVar[str] = "thinking"
    arguments_member: ClassVar[str] = "input"
    limit_reason: ClassVar[str] = "max_tokens"
    terminals: ClassVar[tuple[str, ...]] = ("message_stop",)

    model: str
    ids: Ids
    account_id: str

    def new_block(self, part: Part) -> Block:
        if isinstance(part, Call):
            name, arguments = part.tool.name, part.arguments
            return {"type": "tool_use", "id": self.ids.new("toolu"), "name": name, "input": arguments}
        if isinstance(part, Think):
            text = "\n\n".join(part.paragraphs)
            signature = encrypt(self.account_id, "thinking", text[:20])
            return {"type": "thinking", "thinking": text, "signature": signature}
        return {"type": "text", "text": part.text if isinstance(part, Say) else ""}

    @property
    def usage(self) -> dict[str, int]:
        return {
            "input_tokens": self.input_tokens - self.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cached_tokens,
            "output_tokens": sum(tokens_of(dump_json(block)) for block in self.blocks),
        }

    def beginning(self) -> list[Event]:
        message = {**self._message([]), "stop_reason": None, "usage": {**self.usage, "output_tokens": 0}}
        return [{"type": "message_start", "message": message}, {"type": "ping"}]

    def end(self) -> list[Action]:
        delta = {"stop_reason": self._stop_reason, "stop_sequence": None}
        return [{"type": "message_delta", "delta": delta, "usage": self.usage}, {"type": "message_stop"}]

    def events_of(self, place: int) -> list[Event]:
        block = self.blocks[place]
        return block_events(place, {**block, **_EMPTIED[block["type"]]}, *self._deltas(block))

    def _deltas(self, block: Block) -> list[dict[str, Any]]:
        if block["type"] == "text":
            return [{"type": "text_delta", "text": word} for word in words(block["text"])]
        if block["type"] == "tool_use":
            return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(self.arguments_of(block))]
        thought = [{"type": "thinking_delta", "thinking": word} for word in words(block["thinking"])]
        return [*thought, {"type": "signature_delta", "signature": block["signature"]}]

    def whole(self) -> dict[str, Any]:
        content = [
            {**block, "input": json.loads(block["input"])} if isinstance(block.get("input"), str) else block
            for block in self.blocks
        ]
        message = {**self._message(content), "stop_reason": self._stop_reason, "usage": self.usage}
        return {**message, **self.extra}

    def kind_of(self, event: Event) -> str | None:
        return _KINDS.get(event["delta"]["type"]) if event["type"] == "content_block_delta" else None

    def text_event(self, text: str) -> Event:
        """A delta of text, in the first text block, or in the first block if there is none."""
        index = next((place for place, block in enumerate(self.blocks) if block["type"] == "text"), 0)
        return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}

    def strange_event(self, number: int) -> Event:
        strange = (
            {"type": "future_event", "notice": "?"},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "future_delta", "future": "?"}},
            {"type": "message_notice", "message": {"queued": number}},
        )
        return strange[number % 3]

    def failure(
        self, message: str = "Internal server error", kind: str = "api_error", code: str | int | None = None
    ) -> Event:
        return {
            "type": "error",
            "error": {"type": kind, "message": message, **({} if code is None else {"code": code})},
        }

    def keepalive(self) -> Event:
        return {"type": "ping"}

    @property
    def _stop_reason(self) -> str:
        return self.reason or ("tool_use" if self.calls else "end_turn")

    def _message(self, content: list[Block]) -> dict[str, Any]:
        return {
            "id": self.ids.new("msg"),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_sequence": None,
        }


def block_events(index: int, started: Block, *deltas: dict[str, Any]) -> list[Event]:
    """Start, deltas and stop of a block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": started},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]
