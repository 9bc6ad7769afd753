"""The sockets of one account: opened for a request, kept for the next turn of its conversation, closed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable

from proxy.core.identity import Owner
from proxy.observe.capture.contract import NULL_CAPTURE, RequestCapture
from proxy.providers.contract import Services
from proxy.providers.p1_codex.socket.connect import ConnectLimiter, SocketConnector, upgrade_digest
from proxy.providers.p1_codex.socket.connection import Socket
from proxy.providers.p1_codex.socket.continuation import ContinuationLimits, Continuations
from proxy.providers.p1_codex.socket.handshake import UNAUTHORIZED, HandshakeFailed, not_now
from proxy.providers.p1_codex.socket.health import SocketHealth
from proxy.providers.p1_codex.socket.keepalive import SocketTimers
from proxy.providers.p1_codex.socket.pool import Pool, PoolLimits
from proxy.providers.upstream.transport import HeaderObserver


class SocketManager:
    """Opens, keeps and closes the sockets of one account."""

    def __init__(self, services: Services, *, floor_s: float, observe_headers: HeaderObserver) -> None:
        self.timers = services.tuning.of(SocketTimers)
        self.pool: Pool[Socket] = Pool(services.tuning.of(PoolLimits))
        self.continuations = Continuations(services.tuning.of(ContinuationLimits))
        self.now = asyncio.get_running_loop().time
        self._limiter = ConnectLimiter(floor_s, now=self.now, sleep=services.sleep, evict=self._evict)
        self._connector = SocketConnector(services, self._limiter, self.timers, observe_headers)
        self._readers: dict[int, asyncio.Task[None]] = {}  # of the sockets in the pool, by their numbers
        self._reaper: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.health = SocketHealth()

    async def open(
        self, url: str, headers: dict[str, str], *, hurried: bool, renewed: bool, capture: RequestCapture = NULL_CAPTURE
    ) -> Socket:
        """A fresh socket, the caller's to close. Raises HandshakeFailed; UpstreamError when an outgoing proxy fails.

        hurried  the request can use HTTP: it does not wait long, nor try what failed a while ago and would again
        renewed  its token is a new one: another renewal would not help, and each one ends the token before
        capture  is told of upgrades that fail
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
        """What became of a socket with a request: it brought an answer, or it died before the end of one."""
        self.health = self.health.died(self.now()) if died else self.health.answered()

    def put(self, owner: Owner, socket: Socket) -> bool:
        """Whether the socket is kept for the owner's next turn. A reader answers the backend's pings meanwhile, without
        which the backend would close it."""
        if not self.pool.put(owner, socket, self.now()):
            return False
        self._readers[socket.number] = asyncio.create_task(self._read(owner, socket))
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.create_task(self._reap())
        return True

    async def take(self, owner: Owner) -> Socket | None:
        """The socket that was kept for the owner, which from now on nobody else reads."""
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
        self.pool.drop(owner, socket)  # at once, so that no turn gets it
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
        """Closes what has waited too long, as long as anything waits."""
        while len(self.pool):
            await asyncio.sleep(self.timers.reap)
            await self._close_all(self.pool.take_old(self.now()))

    async def _close_all(self, sockets: Iterable[Socket]) -> None:
        """Closes all of them, also when the caller is cancelled meanwhile: closing is short, and ends by itself."""
        closing = {asyncio.create_task(self._close(socket)) for socket in sockets}
        self._closing |= closing
        for task in closing:
            task.add_done_callback(self._closing.discard)
        if closing:
            await asyncio.wait(closing)

    async def _close(self, socket: Socket) -> None:
        await self._stop_reading(socket)
        await socket.close()
