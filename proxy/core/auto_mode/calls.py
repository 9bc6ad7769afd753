"""The tool calls of an answer, out of its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from proxy.core.auto_mode.question import MAX_CALL
from proxy.core.auto_mode.verdicts import ToolUse
from proxy.core.blocks import TOOL_USE
from proxy.core.messages import Event
from proxy.core.sizes import least_size
from proxy.core.tools.calls import parse_arguments


@dataclass(slots=True)
class _Open:
    id: str
    tool: str
    input: Any
    pieces: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, piece: str) -> None:
        """Of one that is too long nothing is kept: nobody judges half of a call."""
        self.size += len(piece)
        if self.size > MAX_CALL:
            self.pieces = []
        else:
            self.pieces.append(piece)

    def call(self, *, whole: bool) -> ToolUse:
        if self.size > MAX_CALL or not whole:
            return ToolUse(self.id, self.tool, {}, self.size, whole)
        text = "".join(self.pieces)
        value = parse_arguments(text) if text else self.input
        if not isinstance(value, dict):  # clients get it as a text, which no tool takes
            value = {"_raw": text}
        return ToolUse(self.id, self.tool, value, self.size or least_size(value, MAX_CALL))


class CallCollector:
    """Collects them. `whole` are those that came to their end."""

    def __init__(self) -> None:
        self.whole: list[ToolUse] = []
        self._open: dict[int, _Open] = {}

    def see(self, events: Iterable[Event]) -> None:
        for event in events:
            kind = event["type"]
            if kind == "content_block_start" and event["content_block"].get("type") == TOOL_USE.name:
                block = event["content_block"]
                self._open[event["index"]] = _Open(block["id"], block["name"], block.get("input"))
            elif kind == "content_block_delta" and event["index"] in self._open:
                self._open[event["index"]].add(event["delta"].get("partial_json") or "")
            elif kind == "content_block_stop" and event["index"] in self._open:
                self.whole.append(self._open.pop(event["index"]).call(whole=True))

    def finished(self) -> list[ToolUse]:
        """All of them, at the end of the answer: also the one that the token limit cut."""
        self.whole += [one.call(whole=False) for one in self._open.values()]
        self._open = {}
        return self.whole
