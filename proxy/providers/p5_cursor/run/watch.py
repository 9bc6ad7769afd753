"""Limits how long a run may be silent, idle or paused. Pure: the times are arguments, in seconds of any clock.

Every byte is a sign of life; only envelopes other than heartbeats are progress. Silence means nothing while a tool of
the client is at work, or while nothing is read because the output is not taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class RunTimers:
    """Limits in seconds. Those of silence rest while a tool of the client is at work.

    headers     from the request for the stream to the head of its answer
    early       after this long without that head the first message is sent anyway: something on the way may hold the
                head back until there is a body
    append      one message of ours
    heartbeat   between two signs of life of ours
    exec_heartbeat  between two signs of life for each tool at work
    first       from the first message to the first byte
    silence     without any byte
    quiet_end   without any byte between envelopes, once a part of the answer was visible: then the turn counts as ended
    progress    with nothing but heartbeats
    whole       all of a run, without its pauses
    pause       how long a client may take for its tool
    stalled     with nothing but heartbeats after the result of a tool
    after_end   how long to wait for the end of the stream after the turn's end
    cancel      how long cancelling the run at the service may take
    """

    headers: float = 90.0
    early: float = 5.0
    append: float = 30.0
    heartbeat: float = 5.0
    exec_heartbeat: float = 3.0
    first: float = 45.0
    silence: float = 60.0
    quiet_end: float = 30.0
    progress: float = 600.0
    whole: float = 1800.0
    pause: float = 1800.0
    stalled: float = 60.0
    after_end: float = 0.5
    cancel: float = 2.0


class WaitEnd(Enum):
    """The meaning of a wait's end."""

    NO_START = auto()
    SILENT = auto()
    QUIET_END = auto()
    NO_PROGRESS = auto()
    STALLED = auto()
    TOO_LONG = auto()
    PAUSE_OVER = auto()


class RunWatch:
    """Watches one run from its first message on."""

    def __init__(self, timers: RunTimers, now: float) -> None:
        self._timers = timers
        self._began = now
        self._heard: float | None = None  # the last bytes
        self._inside = False  # whether the last bytes ended inside an envelope
        self._moved = now  # the last envelope that was not a heartbeat
        self._visible = False  # whether this answer has text; thoughts alone do not count
        self._delivered: float | None = None  # the result of a tool, with no output since
        self._resting: float | None = None
        self._blocked = False
        self._rested = 0.0

    @property
    def rests(self) -> bool:
        """Whether a tool of the client is at work."""
        return self._resting is not None

    def heard(self, now: float, *, inside: bool = False) -> None:
        """Notes received bytes; `inside`: they end inside an envelope."""
        self._heard, self._inside = now, inside

    def moved(self, now: float) -> None:
        """Notes an envelope that is not a heartbeat."""
        self._moved = now

    def said(self, *, visible: bool) -> None:
        """Notes a part of the answer; `visible`: text, which a turn may end with."""
        self._visible, self._delivered = self._visible or visible, None

    def rest(self, now: float) -> None:
        """Notes that a tool is at work, or one more; a client may take its time for each."""
        self._count_rest(now)
        self._resting = now

    def go_on(self, now: float, *, delivered: bool) -> None:
        """Notes that no tool is at work any more; `delivered`: the service got a result."""
        self._count_rest(now)
        self._resting = None
        self._heard = self._moved = now
        self._visible = False
        self._delivered = now if delivered else None

    def _count_rest(self, now: float) -> None:
        if self._resting is not None:
            self._rested += now - self._resting

    def block(self) -> None:
        """Notes that nothing is read until there is room."""
        self._blocked = True

    def unblock(self, now: float) -> None:
        self._blocked = False
        self._heard = self._moved = now

    def limit(self) -> tuple[float, WaitEnd]:
        """The next moment that has a meaning, if nothing happens before it, and its meaning."""
        if self._resting is not None:
            return self._resting + self._timers.pause, WaitEnd.PAUSE_OVER
        limits = [(self._began + self._rested + self._timers.whole, WaitEnd.TOO_LONG)]
        if not self._blocked:
            limits += self._silences()
        return min(limits, key=lambda limit: limit[0])

    def _silences(self) -> list[tuple[float, WaitEnd]]:
        timers = self._timers
        if self._heard is None:
            return [(self._began + timers.first, WaitEnd.NO_START)]
        limits = [(self._moved + timers.progress, WaitEnd.NO_PROGRESS)]
        if self._visible and not self._inside:
            limits.append((self._heard + timers.quiet_end, WaitEnd.QUIET_END))
        else:
            limits.append((self._heard + timers.silence, WaitEnd.SILENT))
        if self._delivered is not None:
            limits.append((max(self._delivered, self._moved) + timers.stalled, WaitEnd.STALLED))
        return limits
