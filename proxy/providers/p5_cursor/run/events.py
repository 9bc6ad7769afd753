"""The output of a run, until it is taken."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]

#: Characters of events that may wait; while there are more, nothing is read.
MAX_WAITING_CHARS = 4 * 1024 * 1024
#: Characters that an event without text counts as: about the memory that it takes.
EVENT_CHARS = 256


@dataclass(slots=True)
class RunOutput:
    """The amount of a run's output, over all of its answers.

    tokens    sum of the counts that the service sent on the way
    chars     characters of text and thoughts
    reported  output tokens that clients already know of
    """

    tokens: int = 0
    chars: int = 0
    reported: int = 0


def as_events(members: list[tuple[str, Any]]) -> list[Event]:
    """The members of an envelope for a capture, updates one by one.

    >>> as_events([("interaction_update", [("heartbeat", {})]), ("kv_server_message", {"id": 1})])
    [{'interaction_update': {'heartbeat': {}}}, {'kv_server_message': {'id': 1}}]
    """
    return [
        {name: one}
        for name, value in members
        for one in ([{update: said} for update, said in value] if isinstance(value, list) else [value])
    ]


class WaitingEvents:
    """The events of one run, and the failure after them. `run.Run` lists the events."""

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
        """Whether the events contain more than an end and calls that the service took back."""
        return any(event["type"] in ("text", "thinking") or _is_open(event) for event in self._events)

    def say(self, event: Event) -> None:
        self._events.append(event)
        self._chars += _chars(event)
        self._news.set()

    def fail(self, error: Exception) -> None:
        """Stores the first failure, which is raised after the events."""
        self.failure = self.failure or error
        self._news.set()

    async def taken(self) -> None:
        """Waits until events are taken."""
        self._taken.clear()
        await self._taken.wait()

    async def take(self) -> list[Event]:
        """Takes all events before the first call of a tool, or that call. Raises the failure."""
        while not (events := self._cut()):
            if self.failure is not None:
                raise self.failure
            self._news.clear()
            await self._news.wait()
        self._taken.set()
        return events

    def _cut(self) -> list[Event]:
        """The next events without calls that the service took back. A call comes alone: an event before it may end the
        answer, and then the call must not have been offered."""
        first = next((place for place, event in enumerate(self._events) if _is_open(event)), len(self._events))
        count = max(first, 1)
        events, self._events = self._events[:count], self._events[count:]
        self._chars -= sum(map(_chars, events))
        return [event for event in events if event["type"] != "tool" or _is_open(event)]


def _is_open(event: Event) -> bool:
    """Whether an event is a call that a client must answer."""
    return event["type"] == "tool" and not event["call"].aborted


def _chars(event: Event) -> int:
    return EVENT_CHARS + len(event.get("text", ""))
