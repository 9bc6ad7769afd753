"""One answer in Responses events: the normal one, and the tools with which a fault alters it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from proxy.sandbox.model.reply import Ask, Tool
from proxy.sandbox.play.actions import NAMED, Action, Framing
from proxy.sandbox.wires.answer import SOME_THOUGHT, Answer, Event, some_call
from proxy.sandbox.wires.responses.failures import error_object
from proxy.sandbox.wires.responses.items import Item, Writer, usage_of
from proxy.sandbox.wires.responses.stream import answer_events, number, terminal

TEXT_DELTA = "response.output_text.delta"
THINKING_DELTA = "response.reasoning_summary_text.delta"
ARGUMENTS_DELTA = "response.function_call_arguments.delta"

_KINDS = {TEXT_DELTA: "text", THINKING_DELTA: "thinking", ARGUMENTS_DELTA: "call"}
_TERMINALS = ("response.completed", "response.incomplete")


@dataclass
class ResponsesAnswer(Answer):
    """`envelope` is the response object without output, status and usage; `items` the finished output.

    `extra` are members that a gateway adds to an answer without a stream.
    """

    framing: ClassVar[Framing] = NAMED
    opening: ClassVar[int] = 2

    ask: Ask
    envelope: dict[str, Any]
    items: list[Item]
    writer: Writer
    input_tokens: int
    cached_tokens: int = 0
    tail: bytes = b""
    tail_comes: str = "together"
    extra: dict[str, Any] | None = None

    @property
    def usage(self) -> dict[str, Any]:
        return usage_of(self.items, self.input_tokens, self.cached_tokens)

    def events(self, items: list[Item] | None = None) -> list[Event]:
        """The normal events, of other items when some are given."""
        if items is not None:
            self.items = items
        return answer_events(self.envelope, self.items, self.usage)

    def stream(self) -> list[Action]:
        return [*number(self.events())]

    def whole(self) -> dict[str, Any]:
        return {**self.response("completed"), **(self.extra or {})}

    def finished(self, actions: list[Action]) -> list[Action]:
        """Counted anew when a fault has added events or made its own."""
        events = [action for action in actions if isinstance(action, dict)]
        if not all("sequence_number" in event for event in events):
            for _ in number(events):
                pass
        return super().finished(actions)

    def is_terminal(self, action: Action) -> bool:
        return isinstance(action, dict) and action["type"] in _TERMINALS

    def kind_of(self, event: Event) -> str | None:
        return _KINDS.get(event["type"])

    def add_call(self) -> None:
        self.items = self.with_calls()

    def add_thought(self) -> None:
        self.items = self.with_reasoning()

    def clear(self, *, message: bool) -> None:
        self.items = [self.writer.message("")] if message else []

    def fix_call_ids(self, prefix: str) -> None:
        calls = [item for item in self.items if "call_id" in item]
        for place, item in enumerate(calls):
            item["call_id"] = f"{prefix}{place}"

    def text_event(self, text: str) -> Event:
        return {"type": TEXT_DELTA, "output_index": 0, "content_index": 0, "delta": text}

    def strange_event(self, number: int) -> Event:
        kinds = ("response.some_future.delta", "codex.response.metadata", "response.queued")
        return {"type": kinds[number % 3], "delta": "?", "output_index": 7}

    def failure(self) -> Event:
        return self.failed("server_error", None, None)

    def keepalive(self) -> Action:
        return {"type": "keepalive"}

    def failed(self, code: str, message: str | None, status: int | None) -> Event:
        """A `response.failed` with that error."""
        error = error_object(code, message)
        event = terminal("response.failed", self.response("failed", output=[], usage=None, error=error))
        return event if status is None else {**event, "status": status}

    def response(self, status: str, **members: Any) -> dict[str, Any]:
        """The final response object with that status."""
        return {**self.envelope, "status": status, "output": self.items, "usage": self.usage, **members}

    def with_calls(self, count: int = 1) -> list[Item]:
        """The items, with at least `count` calls among them: of the first tool offered, else of Bash."""
        missing = count - sum(item["type"] == "function_call" for item in self.items)
        return [*self.items, *(self.writer.call(*some_call(self.ask, place)) for place in range(missing))]

    def with_read(self, **arguments: Any) -> list[Item]:
        """The items with one call of Read, which has these arguments beside a file path."""
        path = {"file_path": "/tmp/example.txt"}  # noqa: S108 - a name only, nothing is opened
        others = [item for item in self.items if item["type"] != "function_call"]
        return [*others, self.writer.call(Tool("Read"), {**path, **arguments})]

    def with_reasoning(self) -> list[Item]:
        """The items, with a reasoning item in front if there is none."""
        if any(item["type"] == "reasoning" for item in self.items):
            return self.items
        return [self.writer.reasoning([SOME_THOUGHT]), *self.items]
