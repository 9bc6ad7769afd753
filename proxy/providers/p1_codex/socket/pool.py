"""Open sockets that wait for the next turn of their conversation. Pure: it hands out what has to be closed."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from proxy.core.identity import Owner

#: The backend ends a socket after 60 minutes.
MAX_AGE_S = 55 * 60.0


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """
    most    when more than this many wait, the pool is reduced before a socket is opened
    least   to this many
    idle_s  the state of a conversation is gone by then
    """

    most: int = 50
    least: int = 40
    idle_s: float = 30 * 60.0


class Pooled(Protocol):
    """What the pool needs to know of a socket: a number that no other has, and when it was opened."""

    number: int
    born: float

    @property
    def closed(self) -> bool: ...


S = TypeVar("S", bound=Pooled)


class Pool(Generic[S]):
    """One socket an owner at most. Taking one removes it, so nobody else can use it at the same time."""

    def __init__(self, limits: PoolLimits | None = None) -> None:
        self._limits = limits or PoolLimits()
        self._waiting: OrderedDict[Owner, tuple[S, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, owner: Owner) -> S | None:
        found = self._waiting.pop(owner, None)
        return found[0] if found is not None else None

    def put(self, owner: Owner, socket: S, now: float) -> bool:
        """Whether the socket is kept; it is the caller's to close otherwise."""
        if owner in self._waiting or socket.closed or not is_young(socket, now):
            return False
        self._waiting[owner] = (socket, now)
        return True

    def drop(self, owner: Owner, socket: S) -> None:
        """Takes a socket out that is of no more use, if it is still there."""
        if owner in self._waiting and self._waiting[owner][0] is socket:
            del self._waiting[owner]

    def take_surplus(self) -> list[S]:
        """Those that have waited longest, when there are too many."""
        if len(self._waiting) <= self._limits.most:
            return []
        return [self._waiting.popitem(last=False)[1][0] for _ in range(len(self._waiting) - self._limits.least)]

    def take_old(self, now: float) -> list[S]:
        """Those that nobody may use any more."""
        old = [
            owner
            for owner, (socket, since) in self._waiting.items()
            if socket.closed or not is_young(socket, now) or now - since > self._limits.idle_s
        ]
        return [self._waiting.pop(owner)[0] for owner in old]

    def take_all(self) -> list[S]:
        sockets = [socket for socket, _ in self._waiting.values()]
        self._waiting.clear()
        return sockets


def is_young(socket: Pooled, now: float) -> bool:
    """Whether a socket has time left for another answer."""
    return now - socket.born <= MAX_AGE_S
