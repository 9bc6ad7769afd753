"""One answer in the making, on any wire: its ids, and what the common faults need of it."""

from __future__ import annotations

import itertools
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from proxy.core.sse import dump_json
from proxy.sandbox.model.reply import Ask, Call, Part, Say, Think, Tool
from proxy.sandbox.play.actions import Action, Framing, Pause, Raw


class Ids:
    """Ids that look like a vendor's and never repeat, even after a restart."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(6)
        self._numbers = itertools.count(1)

    def new(self, prefix: str) -> str:
        return f"{prefix}_{self._run}{next(self._numbers):012x}"


Event = dict[str, Any]
Block = dict[str, Any]

#: The pause before a tail in its own write.
TAIL_PAUSE_S = 0.03

#: The thought that a fault adds when it needs one.
SOME_THOUGHT = Think(("**Thinking**\n\nBecause the script says so.",))


def some_call(ask: Ask, number: int) -> Call:
    """The call that a fault adds when it needs one: of the first tool offered, else of Bash."""
    tool = next((one for one in ask.tools if not one.freeform), Tool("Bash"))
    return Call(tool, {"command": f"echo {number}"})


class Playable(ABC):
    """The interface of an answer for an upstream. Actions may be made while others are played."""

    framing: ClassVar[Framing]
    ask: Ask

    @abstractmethod
    def stream(self) -> Iterable[Action]:
        """The normal answer."""

    @abstractmethod
    def whole(self) -> dict[str, Any]:
        """The answer to a request without a stream."""

    def finished(self, actions: Iterable[Action]) -> Iterable[Action]:
        """The actions, with what this upstream sends after a good end."""
        return actions


@dataclass(kw_only=True)
class Answer(Playable):
    """The normal answer to `ask`, with methods by which a fault alters it.

    `blocks` are the finished output in the form of this wire: thoughts and texts, then the calls. A call's arguments
    may be replaced by a text, which is sent unchanged. `reason` is why the answer ends, None for the normal end. `tail`
    are bytes that this upstream sends after the end of a good answer: in its write, in a "later" one, or not at all
    ("none"). `extra` are members that a gateway adds to an answer without a stream."""

    opening: ClassVar[int] = 1  # number of events before any output
    call_type: ClassVar[str]  # of blocks
    thought_type: ClassVar[str]
    id_member: ClassVar[str] = "id"  # of a call
    arguments_member: ClassVar[str] = "arguments"
    limit_reason: ClassVar[str]  # reason of an answer that the output limit cuts
    terminals: ClassVar[tuple[str, ...]] = ()  # types of the events that end a good answer

    ask: Ask
    input_tokens: int
    cached_tokens: int = 0
    blocks: list[Block] = field(default_factory=list)
    reason: str | None = None
    tail: bytes = b""
    tail_comes: str = "together"
    extra: dict[str, Any] = field(default_factory=dict)

    @abstractmethod
    def new_block(self, part: Part) -> Block:
        """The next block, made from a part of the reply."""

    @abstractmethod
    def beginning(self) -> list[Event]:
        """The events before any output."""

    @abstractmethod
    def events_of(self, place: int) -> list[Event]:
        """The events of the block at that place."""

    @abstractmethod
    def end(self) -> list[Action]:
        """The actions after the output, the terminal event last."""

    @abstractmethod
    def kind_of(self, event: Event) -> str | None:
        """The kind of a delta: thinking, text or call; None for other events."""

    @abstractmethod
    def text_event(self, text: str) -> Event:
        """A delta of text."""

    @abstractmethod
    def strange_event(self, number: int) -> Event:
        """An event unknown to clients, one of several kinds."""

    @abstractmethod
    def failure(self) -> Event:
        """The event of a server error."""

    @abstractmethod
    def keepalive(self) -> Event: ...

    def is_terminal(self, action: Action) -> bool:
        return isinstance(action, dict) and action.get("type") in self.terminals

    def say(self, parts: Iterable[Part]) -> None:
        """Appends the parts of the model's reply."""
        for part in parts:
            self.blocks.append(self.new_block(part))

    @property
    def call_places(self) -> list[int]:
        return [place for place, block in enumerate(self.blocks) if block["type"] == self.call_type]

    @property
    def calls(self) -> list[Block]:
        return [self.blocks[place] for place in self.call_places]

    def stream(self) -> list[Action]:
        """The current answer, from its beginning to its terminal event."""
        return self.around(self.call_events())

    def call_events(self) -> list[Event]:
        return [event for place in self.call_places for event in self.events_of(place)]

    def around(self, calls: Sequence[Event]) -> list[Action]:
        """The stream with these events in place of those of the calls."""
        others = (place for place in range(len(self.blocks)) if place not in self.call_places)
        return [*self.beginning(), *(event for place in others for event in self.events_of(place)), *calls, *self.end()]

    def add_calls(self, count: int = 1) -> None:
        """Adds calls until there are this many."""
        self.say(some_call(self.ask, number) for number in range(count - len(self.calls)))

    def add_thought(self) -> None:
        """Puts a thought first unless there is one."""
        if not any(block["type"] == self.thought_type for block in self.blocks):
            self.blocks.insert(0, self.new_block(SOME_THOUGHT))

    def clear(self, *, message: bool) -> None:
        """Removes all output; with `message` a message without text stays."""
        self.blocks = [self.new_block(Say(""))] if message else []

    def fix_call_ids(self, prefix: str) -> None:
        """Numbers the calls from 0, like upstreams whose ids repeat within a conversation."""
        for number, call in enumerate(block for block in self.blocks if self.id_member in block):
            call[self.id_member] = f"{prefix}{number}"

    def arguments_of(self, call: Block) -> str:
        """The arguments as JSON text."""
        arguments = call[self.arguments_member]
        return arguments if isinstance(arguments, str) else dump_json(arguments)

    def encode(self, events: list[Event]) -> bytes:
        return self.framing.encode(events)

    def finished(self, actions: Iterable[Action]) -> list[Action]:
        """The actions with the tail, if they have a good answer's end."""
        actions = list(actions)
        if not (self.tail and actions and self.is_terminal(actions[-1])) or self.tail_comes == "none":
            return actions
        *rest, last = actions
        if self.tail_comes == "later":
            return [*actions, Pause(TAIL_PAUSE_S), Raw(self.tail)]
        end = last.data if isinstance(last, Raw) else self.encode([last]) if isinstance(last, dict) else b""
        return [*rest, Raw(end + self.tail)]
