"""One answer in the making, on whatever wire: what the faults that every wire knows need of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from proxy.sandbox.model.reply import Ask, Tool
from proxy.sandbox.play.actions import Action, Framing, Pause, Raw

Event = dict[str, Any]

#: How long the tail keeps away from the end of the answer when it is to come in a write of its own.
TAIL_PAUSE_S = 0.03

#: What is thought when a fault needs a thought.
SOME_THOUGHT = "**Thinking**\n\nBecause the script says so."


def some_call(ask: Ask, number: int) -> tuple[Tool, dict[str, Any]]:
    """What is called when a fault needs a call: the first tool offered, else Bash."""
    tool = next((one for one in ask.tools if not one.freeform), Tool("Bash"))
    return tool, {"command": f"echo {number}"}


class Answer(ABC):
    """The normal answer to `ask`, and the tools with which a fault alters it.

    `tail` are bytes that this upstream sends behind the end of a good answer: in the same write as the end, in a
    "later" one, or not at all ("none").
    """

    framing: ClassVar[Framing]
    opening: ClassVar[int] = 1  # how many events come before there is any output

    ask: Ask
    input_tokens: int
    tail: bytes = b""
    tail_comes: str = "together"

    @abstractmethod
    def stream(self) -> list[Action]:
        """The answer as it is now, from its beginning to its terminal event."""

    @abstractmethod
    def whole(self) -> dict[str, Any]:
        """The answer to a request that wants no stream."""

    @abstractmethod
    def is_terminal(self, action: Action) -> bool: ...

    @abstractmethod
    def kind_of(self, event: Event) -> str | None:
        """thinking, text or call for a delta of it; None for other events."""

    @abstractmethod
    def add_call(self) -> None:
        """Puts a call into the answer unless there is one."""

    @abstractmethod
    def add_thought(self) -> None:
        """Puts a thought into the answer unless there is one."""

    @abstractmethod
    def clear(self, *, message: bool) -> None:
        """Takes all output away; with `message` a message without text stays."""

    @abstractmethod
    def fix_call_ids(self, prefix: str) -> None:
        """Numbers the calls from 0, as upstreams do whose ids repeat within a conversation."""

    @abstractmethod
    def text_event(self, text: str) -> Event:
        """A delta of text."""

    @abstractmethod
    def strange_event(self, number: int) -> Event:
        """An event that no client knows, of one of several kinds."""

    @abstractmethod
    def failure(self) -> Event:
        """An event that tells of a server error."""

    @abstractmethod
    def keepalive(self) -> Action: ...

    def encode(self, events: list[Event]) -> bytes:
        return self.framing.encode(events)

    def finished(self, actions: list[Action]) -> list[Action]:
        """The actions with the tail, if they end as a good answer does."""
        if not (self.tail and actions and self.is_terminal(actions[-1])) or self.tail_comes == "none":
            return actions
        *rest, last = actions
        if self.tail_comes == "later":
            return [*actions, Pause(TAIL_PAUSE_S), Raw(self.tail)]
        end = last.data if isinstance(last, Raw) else self.encode([last]) if isinstance(last, dict) else b""
        return [*rest, Raw(end + self.tail)]
