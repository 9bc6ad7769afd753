"""One answer in Messages events: the normal one, and the tools with which a fault alters it.

message_start, ping
for each block: content_block_start, its deltas, content_block_stop
message_delta with stop reason and usage, message_stop
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from proxy.core.sse import dump_json
from proxy.sandbox.ids import Ids
from proxy.sandbox.model.pieces import pieces, tokens_of, words
from proxy.sandbox.model.reply import Ask, Call, Part, Say, Think
from proxy.sandbox.play.actions import NAMED, Action, Framing
from proxy.sandbox.wires.answer import SOME_THOUGHT, Answer, Event, some_call
from proxy.sandbox.wires.encrypted_content import seal

Block = dict[str, Any]

_KINDS = {"thinking_delta": "thinking", "text_delta": "text", "input_json_delta": "call"}


@dataclass
class MessagesAnswer(Answer):
    """`blocks` are the finished content; for faults the input of a tool_use block may be a text, sent as it is."""

    framing: ClassVar[Framing] = NAMED
    opening: ClassVar[int] = 2

    ask: Ask
    model: str
    ids: Ids
    account_id: str
    input_tokens: int
    cached_tokens: int = 0
    tail: bytes = b""
    tail_comes: str = "together"
    extra: dict[str, Any] = field(default_factory=dict)  # of an answer without a stream
    blocks: list[Block] = field(default_factory=list)
    stop_reason: str | None = None

    def say(self, parts: Sequence[Part]) -> None:
        """Takes the parts of the model's reply."""
        for part in parts:
            if isinstance(part, Think):
                self.blocks.append(self._thinking("\n\n".join(part.paragraphs)))
            elif isinstance(part, Say):
                self.blocks.append({"type": "text", "text": part.text})
            elif isinstance(part, Call):
                self.blocks.append(self._tool_use(part.tool.name, part.arguments))

    @property
    def calls(self) -> list[Block]:
        return [block for block in self.blocks if block["type"] == "tool_use"]

    @property
    def usage(self) -> dict[str, int]:
        return {
            "input_tokens": self.input_tokens - self.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cached_tokens,
            "output_tokens": sum(tokens_of(dump_json(block)) for block in self.blocks),
        }

    def stream(self) -> list[Action]:
        return self.around([event for index in range(len(self.blocks)) for event in self.block_events(index)])

    def around(self, blocks: Sequence[Event]) -> list[Action]:
        """The stream with these events in place of the normal ones of the blocks."""
        return [*self.beginning(), *blocks, *self.end()]

    def beginning(self) -> list[Event]:
        message = {**self._message([]), "stop_reason": None, "usage": {**self.usage, "output_tokens": 0}}
        return [{"type": "message_start", "message": message}, {"type": "ping"}]

    def end(self) -> list[Event]:
        delta = {"stop_reason": self._stop_reason, "stop_sequence": None}
        return [{"type": "message_delta", "delta": delta, "usage": self.usage}, {"type": "message_stop"}]

    def block_events(self, index: int) -> list[Event]:
        """Start, deltas and stop of the block."""
        block = self.blocks[index]
        empty: dict[str, Block] = {
            "thinking": {"thinking": "", "signature": ""},
            "text": {"text": ""},
            "tool_use": {"input": {}},
        }
        return [
            {"type": "content_block_start", "index": index, "content_block": {**block, **empty[block["type"]]}},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in _deltas(block)),
            {"type": "content_block_stop", "index": index},
        ]

    def whole(self) -> dict[str, Any]:
        content = [
            {**block, "input": json.loads(block["input"])} if isinstance(block.get("input"), str) else block
            for block in self.blocks
        ]
        message = {**self._message(content), "stop_reason": self._stop_reason, "usage": self.usage}
        return {**message, **self.extra}

    def is_terminal(self, action: Action) -> bool:
        return isinstance(action, dict) and action["type"] == "message_stop"

    def kind_of(self, event: Event) -> str | None:
        return _KINDS.get(event["delta"]["type"]) if event["type"] == "content_block_delta" else None

    def add_call(self) -> None:
        self.add_calls(1)

    def add_calls(self, count: int) -> None:
        """At least that many."""
        for number in range(count - len(self.calls)):
            tool, arguments = some_call(self.ask, number)
            self.blocks.append(self._tool_use(tool.name, arguments))

    def add_thought(self) -> None:
        if not any(block["type"] == "thinking" for block in self.blocks):
            self.blocks.insert(0, self._thinking(SOME_THOUGHT))

    def clear(self, *, message: bool) -> None:
        self.blocks = [{"type": "text", "text": ""}] if message else []

    def fix_call_ids(self, prefix: str) -> None:
        for number, block in enumerate(self.calls):
            block["id"] = f"{prefix}{number}"

    def text_event(self, text: str) -> Event:
        """Of the first text block, or of the first block at all."""
        index = next((place for place, block in enumerate(self.blocks) if block["type"] == "text"), 0)
        return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}

    def strange_event(self, number: int) -> Event:
        strange = (
            {"type": "future_event", "notice": "?"},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "future_delta", "future": "?"}},
            {"type": "message_notice", "message": {"queued": number}},
        )
        return strange[number % 3]

    def failure(self) -> Event:
        return {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}

    def keepalive(self) -> Action:
        return {"type": "ping"}

    @property
    def _stop_reason(self) -> str:
        return self.stop_reason or ("tool_use" if self.calls else "end_turn")

    def _message(self, content: list[Block]) -> dict[str, Any]:
        return {
            "id": self.ids.new("msg"),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_sequence": None,
        }

    def _thinking(self, text: str) -> Block:
        return {"type": "thinking", "thinking": text, "signature": seal(self.account_id, "thinking", text[:20])}

    def _tool_use(self, name: str, arguments: dict[str, Any] | str) -> Block:
        return {"type": "tool_use", "id": self.ids.new("toolu"), "name": name, "input": arguments}


def _deltas(block: Block) -> list[dict[str, Any]]:
    if block["type"] == "text":
        return [{"type": "text_delta", "text": word} for word in words(block["text"])]
    if block["type"] == "tool_use":
        arguments = block["input"]
        text = arguments if isinstance(arguments, str) else dump_json(arguments)
        return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]
    thought = [{"type": "thinking_delta", "thinking": word} for word in words(block["thinking"])]
    return [*thought, {"type": "signature_delta", "signature": block["signature"]}]
