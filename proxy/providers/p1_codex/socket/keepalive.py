"""When to ping a socket that is answering, and when to give it up. Pure: the times are arguments.

Only events of the answer are progress. Pings, quota events and the like show that the connection works, not that the
model does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SocketTimers:
    """Limits in seconds.

    connect    the whole way to an open socket: name, proxy, TLS, upgrade
    validate   how long an idle socket may take to answer the ping before it is used again
    start      from the last piece of the request that could be sent to the first event of the answer
    idle       between two of them
    ping       silence after which a ping is sent
    ping_send  how long sending one may take
    close      how long closing may take
    rest       what can use HTTP does so for this long after an upgrade that hung, a refusal that lasts, or sockets that
               died
    patience   requests that can use HTTP wait no longer than this for the back-off between upgrades
    reap       how often waiting sockets that are too old are looked for
    """

    connect: float = 15.0
    validate: float = 15.0
    start: float = 300.0
    idle: float = 300.0
    ping: float = 30.0
    ping_send: float = 10.0
    close: float = 0.25
    rest: float = 300.0
    patience: float = 2.0
    reap: float = 30.0


#: Pings in a row without any frame in answer: the connection is dead.
MISSED_PONGS = 2

PING = "ping"


class Keepalive:
    """Watches one answer. `due` says what to do at a moment, `next` when to ask again."""

    def __init__(self, timers: SocketTimers, now: float) -> None:
        self._timers = timers
        self._progress = now
        self._started = False
        self._signal = now  # the last frame, or the last ping of ours
        self._pings = 0  # since the last frame

    def heard(self, now: float, *, progress: bool) -> None:
        """A frame came; `progress` when it belongs to the answer."""
        self._signal, self._pings = now, 0
        if progress:
            self._progress, self._started = now, True

    def moved(self, now: float) -> None:
        """A piece of the request went out: the connection lives, and the answer is not due yet."""
        self._signal = self._progress = now
        self._pings = 0

    def pinged(self, now: float) -> None:
        self._signal = now
        self._pings += 1

    @property
    def next(self) -> float:
        return min(self._progress + self._limit, self._signal + self._timers.ping)

    def due(self, now: float) -> str | None:
        """PING, the fault that ends the answer (a key of `frames.FAULTS`), or None for nothing yet."""
        if now >= self._progress + self._limit:
            return "ws_idle_timeout" if self._started else "ws_start_timeout"
        if now < self._signal + self._timers.ping:
            return None
        return "ws_keepalive" if self._pings >= MISSED_PONGS else PING

    @property
    def _limit(self) -> float:
        return self._timers.idle if self._started else self._timers.start
