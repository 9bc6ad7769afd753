"""One answer of the simulated P1 in the making: the normal one, and the tools with which a fault alters it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proxy.sandbox.model import Ask, Tool
from proxy.sandbox.p1_items import Item, Writer, usage_of
from proxy.sandbox.stream import Event, answer_events


@dataclass(slots=True)
class Answer:
    """`envelope` is the response object without output, status and usage; `items` the finished output."""

    ask: Ask
    envelope: dict[str, Any]
    items: list[Item]
    writer: Writer
    input_tokens: int
    cached_tokens: int = 0

    @property
    def usage(self) -> dict[str, Any]:
        return usage_of(self.items, self.input_tokens, self.cached_tokens)

    def events(self, items: list[Item] | None = None) -> list[Event]:
        """The normal events, of other items when some are given."""
        if items is not None:
            self.items = items
        return answer_events(self.envelope, self.items, self.usage)

    def response(self, status: str, **members: Any) -> dict[str, Any]:
        """The final response object with that status."""
        return {**self.envelope, "status": status, "output": self.items, "usage": self.usage, **members}

    def with_calls(self, count: int = 1) -> list[Item]:
        """The items, with at least `count` calls among them: of the first tool offered, else of Bash."""
        missing = count - sum(item["type"] == "function_call" for item in self.items)
        tool = next((one for one in self.ask.tools if not one.freeform), Tool("Bash"))
        calls = [self.writer.call(tool, {"command": f"echo {place}"}) for place in range(missing)]
        return [*self.items, *calls]

    def with_read(self, **arguments: Any) -> list[Item]:
        """The items with one call of Read, which has these arguments beside a file path."""
        path = {"file_path": "/tmp/example.txt"}  # noqa: S108 - a name only, nothing is opened
        others = [item for item in self.items if item["type"] != "function_call"]
        return [*others, self.writer.call(Tool("Read"), {**path, **arguments})]

    def with_reasoning(self) -> list[Item]:
        """The items, with a reasoning item in front if there is none."""
        if any(item["type"] == "reasoning" for item in self.items):
            return self.items
        return [self.writer.reasoning(["**Thinking**\n\nBecause the script says so."]), *self.items]
