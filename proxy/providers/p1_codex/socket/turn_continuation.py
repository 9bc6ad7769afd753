"""The sockets of one account, and which conversations may go on over them.

A turn asks for its `Conversation` first. It tells whether an earlier response may be continued, lends the socket that
goes with it, and keeps what the next turn needs, in an order on which a fast next turn can rely: the socket is back
before the state is there, and both before the client hears that the answer is over.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proxy.core.identity import Owner
from proxy.providers.contract import Services
from proxy.providers.p1_codex.socket.connect import Dialer, Gate
from proxy.providers.p1_codex.socket.connection import Socket
from proxy.providers.p1_codex.socket.continuation import Continuations, Plan, Turn, full_context
from proxy.providers.p1_codex.socket.handshake import UNAUTHORIZED, HandshakeFailed, not_now
from proxy.providers.p1_codex.socket.keepalive import Timers
from proxy.providers.p1_codex.socket.pool import REAP_S, Pool, is_young
from proxy.providers.upstream.transport import Heed

#: After an upgrade that hung, or was refused in a way that lasts, who can go over HTTP does so for this long.
HOPELESS_S = 300.0
#: Who can go over HTTP does not wait longer than this for the distance between upgrades.
PATIENCE_S = 2.0


class Sockets:
    """Opens, keeps and closes them. `timers` are an argument for tests."""

    def __init__(self, services: Services, *, floor_s: float, heed: Heed, timers: Timers | None = None) -> None:
        self.timers = timers or Timers()
        self.pool: Pool[Socket] = Pool()
        self.continuations = Continuations()
        self.now = asyncio.get_running_loop().time
        self._gate = Gate(floor_s, now=self.now, sleep=services.sleep, clear_out=self._clear_out)
        self._dialer = Dialer(services, self._gate, self.timers, heed)
        self._reaper: asyncio.Task[None] | None = None
        self._goodbyes: set[asyncio.Task[None]] = set()
        self._refused: tuple[float, str] | None = None  # when no socket could be had the last time, and why

    async def open(self, url: str, headers: dict[str, str], *, hurried: bool, renewed: bool) -> Socket:
        """A fresh socket, the caller's to close. Raises HandshakeFailed; UpstreamError when an outgoing proxy fails.

        hurried  the request has another way: it does not wait long, nor try what failed a while ago and would again
        renewed  its token is a new one: one more would not help, and each makes the last one worthless
        """
        if hurried and self._refused is not None and self.now() - self._refused[0] <= HOPELESS_S:
            raise not_now(f"an earlier upgrade failed ({self._refused[1]})")
        try:
            socket = await self._dialer.open(url, headers, patience_s=PATIENCE_S if hurried else math.inf)
        except HandshakeFailed as failure:
            if failure.lasting or (failure.status == UNAUTHORIZED and renewed):
                self._refused = self.now(), failure.reason
            raise
        self._refused = None
        return socket

    def put(self, owner: Owner, socket: Socket) -> bool:
        """Whether the socket is kept for the owner's next turn."""
        kept = self.pool.put(owner, socket, self.now())
        if kept and (self._reaper is None or self._reaper.done()):
            self._reaper = asyncio.create_task(self._reap())
        return kept

    async def close(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
            self._goodbyes.add(self._reaper)
        try:
            await self._close_all(self.pool.take_all())
            if self._goodbyes:
                await asyncio.wait(self._goodbyes)
        finally:
            await self._dialer.close()

    async def _clear_out(self) -> None:
        await self._close_all(self.pool.take_crowd())

    async def _reap(self) -> None:
        """Closes what has waited too long, as long as anything waits."""
        while len(self.pool):
            await asyncio.sleep(REAP_S)
            await self._close_all(self.pool.take_old(self.now()))

    async def _close_all(self, sockets: Iterable[Socket]) -> None:
        """Lets go of all of them, also when nobody waits for that any more: a goodbye is short, and ends by itself."""
        closing = {asyncio.create_task(socket.close()) for socket in sockets}
        self._goodbyes |= closing
        for task in closing:
            task.add_done_callback(self._goodbyes.discard)
        if closing:
            await asyncio.wait(closing)


class Conversation:
    """One turn's view of its conversation. Without an owner, or with continuation off, there is none, and nothing is
    kept."""

    def __init__(self, sockets: Sockets, owner: Owner | None, body: Mapping[str, Any], *, enabled: bool) -> None:
        self._sockets = sockets
        self._states = sockets.continuations
        self._turn: Turn | None = None
        self._plan = Plan("missing_identity" if enabled else "disabled")
        self._landed: tuple[str, int] | None = None  # the response, and the socket that is back in the pool
        if enabled and owner is not None:
            self._turn = self._states.reserve(owner, body, sockets.now())

    @property
    def active(self) -> bool:
        """Whether anything may be kept of this turn."""
        return self._turn is not None

    @property
    def plan(self) -> Plan:
        return self._turn.plan if self._turn is not None else self._plan

    def send_whole(self) -> None:
        """What was to be continued is not there any more."""
        if self._turn is not None:
            self._turn = full_context(self._turn)

    async def socket(self, opening: bytes) -> Socket | None:
        """The socket that the plan needs, proven to be alive. None when a fresh one is to be opened; what the owner had
        is then of no use and gone, and the plan is to send the whole conversation.

        opening  how a fresh one would be opened, see `dial.opening_of`
        """
        if self._turn is None:
            return None
        socket = self._sockets.pool.take(self._turn.owner)
        if socket is None or not await self._is_good(socket, opening):
            self.send_whole()
            return None
        return socket

    async def _is_good(self, socket: Socket, opening: bytes) -> bool:
        """Closes a socket that is not, however this ends."""
        good = False
        try:
            wanted = (self.plan.continues, socket.number, socket.opening) == (True, self.plan.socket, opening)
            young = not socket.closed and is_young(socket, self._sockets.now())
            good = wanted and young and await socket.is_alive(self._sockets.timers.validate)
        finally:
            if not good:
                await socket.close()
        return good

    def keep(self, socket: Socket, response: str) -> bool:
        """Puts the socket of a complete answer back; False when it is the caller's to close."""
        turn = self._turn
        if turn is None or not response or not self._states.is_current(turn):
            return False
        if not self._sockets.put(turn.owner, socket):
            return False
        self._landed = response, socket.number
        return True

    def record(self, output: Sequence[Mapping[str, Any]]) -> None:
        """Lets the next turn go on from this one. `output`: the answer as input items, as the client will repeat it."""
        if self._turn is None or self._landed is None:
            return
        response, number = self._landed
        now = self._sockets.now()
        if self._states.record(self._turn, response=response, socket=number, output=output, now=now):
            self._turn = None

    async def end(self) -> None:
        """The turn is over. What it did not record is forgotten, its socket too."""
        if self._turn is None:
            return
        turn, self._turn = self._turn, None
        current = self._states.is_current(turn)
        self._states.abort(turn)
        if current and self._landed is not None and (socket := self._sockets.pool.take(turn.owner)) is not None:
            await socket.close()
