"""The sockets of one account: opened for a request, kept for the next turn of its conversation, closed.

Two things rule out sockets for a while. One is an upgrade whose refusal will last. The other is sockets that open and
then die before they brought an answer, as when a box on the way lets only the upgrade pass.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from proxy.core.identity import Owner
from proxy.observe.capture.contract import NULL_CAPTURE, RequestCapture
from proxy.providers.contract import Services
from proxy.providers.p1_codex.socket.connect import ConnectLimiter, SocketConnector, SocketTimers, upgrade_digest
from proxy.providers.p1_codex.socket.connection import Socket
from proxy.providers.p1_codex.socket.continuation import ContinuationLimits, Continuations
from proxy.providers.p1_codex.socket.handshake import UNAUTHORIZED, HandshakeFailed, not_now
from proxy.providers.upstream.transport import HeaderObserver

#: The backend ends a socket after 60 minutes.
MAX_AGE_S = 55 * 60.0


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Bounds of the pool.

    most    when more than this many wait, the pool is reduced before a socket is opened
    least   number that remains then
    idle_s  by then the state of a conversation is gone
    """

    most: int = 50
    least: int = 40
    idle_s: float = 30 * 60.0


class Pooled(Protocol):
    """The pool's view of a socket: a unique number, and when it was opened."""

    number: int
    born: float

    @property
    def closed(self) -> bool: ...


S = TypeVar("S", bound=Pooled)


class Pool(Generic[S]):
    """Holds at most one socket for each owner. Taking one removes it, so that only its taker uses it."""

    def __init__(self, limits: PoolLimits | None = None) -> None:
        self._limits = limits or PoolLimits()
        self._waiting: OrderedDict[Owner, tuple[S, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, owner: Owner) -> S | None:
        found = self._waiting.pop(owner, None)
        return found[0] if found is not None else None

    def put(self, owner: Owner, socket: S, now: float) -> bool:
        """Puts a socket in; False when it is not kept, and the caller must close it."""
        if owner in self._waiting or socket.closed or not is_young(socket, now):
            return False
        self._waiting[owner] = (socket, now)
        return True

    def drop(self, owner: Owner, socket: S) -> None:
        """Removes an unusable socket, if it is still there."""
        if owner in self._waiting and self._waiting[owner][0] is socket:
            del self._waiting[owner]

    def take_surplus(self) -> list[S]:
        """Takes the sockets that have waited longest, when there are too many."""
        if len(self._waiting) <= self._limits.most:
            return []
        return [self._waiting.popitem(last=False)[1][0] for _ in range(len(self._waiting) - self._limits.least)]

    def take_old(self, now: float) -> list[S]:
        """Takes the sockets that can no longer be used."""
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


#: This many sockets in a row that died are no accident. One request tries four, so the next one already uses HTTP; the
#: official client gives up after about six.
DEAD_SOCKETS = 3


@dataclass(frozen=True, slots=True)
class SocketHealth:
    """Whether sockets are worth a try.

    dead    sockets that died one after another; only an answer resets it
    since   when something last spoke against sockets
    reason  what it was, for the log
    digest  of the refused address and token, since another sign-in is worth a try; b"" when the reason is another
    """

    dead: int = 0
    since: float = -math.inf
    reason: str = ""
    digest: bytes = b""

    def objection(self, now: float, rest_s: float, digest: bytes) -> str | None:
        """Why no socket should be tried now. `rest_s`: how long an objection lasts; `digest`: of the address and token
        to use."""
        if not self.reason or now - self.since > rest_s or self.digest not in (b"", digest):
            return None
        return self.reason

    def refused(self, why: str, now: float, digest: bytes) -> SocketHealth:
        """The health after an upgrade that would only fail again."""
        return replace(self, since=now, reason=f"an earlier upgrade failed ({why})", digest=digest)

    def opened(self) -> SocketHealth:
        """The health after an upgrade that worked, which says nothing about how long the socket will live."""
        return self if self.dead >= DEAD_SOCKETS else SocketHealth(self.dead)

    def died(self, now: float) -> SocketHealth:
        """The health after a socket that took a request and brought no whole answer."""
        dead = self.dead + 1
        if dead < DEAD_SOCKETS:
            return replace(self, dead=dead)
        return SocketHealth(dead, now, f"the last {dead} sockets opened and died before the end of an answer")

    def answered(self) -> SocketHealth:
        """The health after a socket that brought an answer."""
        return SocketHealth()


class SocketManager:
    """Opens, keeps and closes the sockets of one account."""

    def __init__(self, services: Services, *, floor_s: float, observe_headers: HeaderObserver) -> None:
        self.timers = services.tuning.of(SocketTimers)
        self.pool: Pool[Socket] = Pool(services.tuning.of(PoolLimits))
        self.continuations = Continuations(services.tuning.of(ContinuationLimits))
        self.now = asyncio.get_running_loop().time
        self._limiter = ConnectLimiter(floor_s, now=self.now, sleep=services.sleep, evict=self._evict)
        self._connector = SocketConnector(services, self._limiter, self.timers, observe_headers)
        self._readers: dict[int, asyncio.Task[None]] = {}  # one for each socket in the pool, by its number
        self._reaper: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.health = SocketHealth()

    async def open(
        self, url: str, headers: dict[str, str], *, hurried: bool, renewed: bool, capture: RequestCapture = NULL_CAPTURE
    ) -> Socket:
        """Opens a fresh socket, which the caller must close. Raises HandshakeFailed; UpstreamError when an outgoing
        proxy fails.

        hurried  the request can use HTTP: it does not wait long, nor try what failed a while ago and would fail again
        renewed  its token is a new one: another renewal would not help, and each one ends the token before
        capture  records upgrades that fail
        """
        digest = upgrade_digest(url, headers)
        if hurried and (objection := self.health.objection(self.now(), self.timers.rest, digest)):
            raise not_now(objection)
        try:
            patience_s = self.timers.patience if hurried else math.inf
            socket = await self._connector.open(url, headers, patience_s=patience_s, capture=capture)
        except HandshakeFailed as failure:
            if failure.lasting or (failure.status == UNAUTHORIZED and renewed):
                self.health = self.health.refused(failure.reason, self.now(), digest)
            raise
        self.health = self.health.opened()
        return socket

    def ended(self, *, died: bool) -> None:
        """Notes the end of a socket with a request: it brought an answer, or died before the answer's end."""
        self.health = self.health.died(self.now()) if died else self.health.answered()

    def put(self, owner: Owner, socket: Socket) -> bool:
        """Keeps a socket for the owner's next turn; False when it is not kept. Meanwhile a reader answers the backend's
        pings, without which the backend would close it."""
        if not self.pool.put(owner, socket, self.now()):
            return False
        self._readers[socket.number] = asyncio.create_task(self._read(owner, socket))
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.create_task(self._reap())
        return True

    async def take(self, owner: Owner) -> Socket | None:
        """Takes the socket that was kept for the owner. From then on only the caller reads it."""
        socket = self.pool.take(owner)
        if socket is not None:
            try:
                await self._stop_reading(socket)
            except asyncio.CancelledError:
                await self._close_all([socket])
                raise
        return socket

    async def _read(self, owner: Owner, socket: Socket) -> None:
        await socket.idle()
        self.pool.drop(owner, socket)  # at once, so that no turn takes it
        del self._readers[socket.number]
        await self._close_all([socket])

    async def _stop_reading(self, socket: Socket) -> None:
        reader = self._readers.pop(socket.number, None)
        if reader is not None:
            reader.cancel()
            await asyncio.wait({reader})

    async def close(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
            self._closing.add(self._reaper)
        try:
            await self._close_all(self.pool.take_all())
            if self._closing:
                await asyncio.wait(self._closing)
        finally:
            await self._connector.close()

    async def _evict(self) -> None:
        await self._close_all(self.pool.take_surplus())

    async def _reap(self) -> None:
        """Closes sockets that have waited too long, until none waits."""
        while len(self.pool):
            await asyncio.sleep(self.timers.reap)
            await self._close_all(self.pool.take_old(self.now()))

    async def _close_all(self, sockets: Iterable[Socket]) -> None:
        """Closes all of them, even when the caller is cancelled meanwhile: closing is short, and ends by itself."""
        closing = {asyncio.create_task(self._close(socket)) for socket in sockets}
        self._closing |= closing
        for task in closing:
            task.add_done_callback(self._closing.discard)
        if closing:
            await asyncio.wait(closing)

    async def _close(self, socket: Socket) -> None:
        await self._stop_reading(socket)
        await socket.close()
