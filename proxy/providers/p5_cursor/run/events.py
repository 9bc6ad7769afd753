"""What a run said, until somebody takes it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]

#: Characters of events that may wait; nothing is read on until they are fewer.
MAX_WAITING_CHARS = 4 * 1024 * 1024


@dataclass(slots=True)
class RunOutput:
    """How much a run has said, over all the answers it gave.

    tokens    sum of the counts that the service gave on the way
    chars     characters of text and thoughts
    reported  output tokens that clients were told of already
    """

    tokens: int = 0
    chars: int = 0
    reported: int = 0


class WaitingEvents:
    """The events of one run, and the failure behind them. See `run.Run` for what there is."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self._events: list[Event] = []
        self._chars = 0
        self._news = asyncio.Event()
        self._taken = asyncio.Event()

    @property
    def full(self) -> bool:
        return self._chars > MAX_WAITING_CHARS

    @property
    def tell_more(self) -> bool:
        """Whether there is more among them than an end."""
        return any(event["type"] != "end" for event in self._events)

    def say(self, event: Event) -> None:
        self._events.append(event)
        self._chars += _chars(event)
        self._news.set()

    def fail(self, error: Exception) -> None:
        """The first failure is raised behind the events."""
        self.failure = self.failure or error
        self._news.set()

    async def taken(self) -> None:
        """Returns when somebody took some."""
        self._taken.clear()
        await self._taken.wait()

    async def take(self) -> list[Event]:
        """All there are, up to and with the first call of a tool. Raises what failed."""
        while not (events := self._cut()):
            if self.failure is not None:
                raise self.failure
            self._news.clear()
            await self._news.wait()
        self._taken.set()
        return events

    def _cut(self) -> list[Event]:
        """The events up to and with the first call, without those that the service took back."""
        first = next((place for place, event in enumerate(self._events) if _is_open(event)), len(self._events))
        events, self._events = self._events[: first + 1], self._events[first + 1 :]
        self._chars -= sum(map(_chars, events))
        return [event for event in events if event["type"] != "tool" or _is_open(event)]


def _is_open(event: Event) -> bool:
    """Whether it is a call that a client has to answer."""
    return event["type"] == "tool" and not event["call"].aborted


def _chars(event: Event) -> int:
    return len(event.get("text", ""))
