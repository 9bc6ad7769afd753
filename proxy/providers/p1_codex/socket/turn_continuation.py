"""One turn of a conversation that may be continued.

It tells whether an earlier response may be continued, lends the socket that goes with it, and keeps what the next turn
needs, in an order on which a fast next turn can rely: the socket is back in the pool before the state is recorded, and
both before the client hears that the answer is over. `continuation` holds the rules, `manager` the sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.core.identity import Owner
from proxy.providers.p1_codex.socket.connection import Socket
from proxy.providers.p1_codex.socket.continuation import (
    ContinuationPlan,
    ReservedTurn,
    Transcript,
    full_context,
    signature_of,
    transcript_of,
)
from proxy.providers.p1_codex.socket.frames import SharedBody
from proxy.providers.p1_codex.socket.manager import SocketManager, is_young


class TurnContinuation:
    """What one turn has of its conversation. Before `reserve` that is nothing, and nothing is kept.

    enabled  whether it is only the owner that is missing then
    """

    def __init__(self, sockets: SocketManager, *, enabled: bool) -> None:
        self._sockets = sockets
        self._states = sockets.continuations
        self._turn: ReservedTurn | None = None
        self._plan = ContinuationPlan("missing_identity" if enabled else "disabled")
        self._kept: tuple[str, int] | None = None  # the response, and the socket that is back in the pool

    async def reserve(self, owner: Owner, body: SharedBody) -> None:
        """Makes it a turn of the owner's conversation."""
        limit = self._states.limits.transcript_bytes

        def digested() -> tuple[Transcript | None, bytes]:
            return transcript_of(body.members["input"], limit, body), signature_of(body.members)

        transcript, signature = await asyncio.to_thread(digested) if body.large else digested()
        self._turn = self._states.reserve(owner, body.members, transcript, self._sockets.now(), signature)

    @property
    def active(self) -> bool:
        """Whether anything may be kept of this turn."""
        return self._turn is not None

    @property
    def plan(self) -> ContinuationPlan:
        return self._turn.plan if self._turn is not None else self._plan

    def send_whole(self) -> None:
        """The response that was to be continued is lost."""
        if self._turn is not None:
            self._turn = full_context(self._turn)

    @property
    def refused_size(self) -> int | None:
        """From how many bytes on a frame of this conversation is not worth a socket."""
        return None if self._turn is None else self._states.refused_size(self._turn.owner, self._sockets.now())

    def refuse(self, size: int) -> None:
        """The upstream takes no frame of this size over a socket."""
        if self._turn is not None:
            self._states.refuse(self._turn.owner, size, self._sockets.now())

    async def socket(self, digest: bytes) -> Socket | None:
        """The socket that the plan needs, after a ping proved that it works. None when a fresh one is to be opened: the
        owner's socket, if there was one, is then closed, and the plan is to send the whole conversation.

        digest  how a fresh one would be opened, see `connect.upgrade_digest`
        """
        if self._turn is None:
            return None
        socket = await self._sockets.take(self._turn.owner)
        if socket is None or not await self._is_usable(socket, digest):
            self.send_whole()
            return None
        return socket

    async def _is_usable(self, socket: Socket, digest: bytes) -> bool:
        """Closes a socket that is not, however this ends."""
        usable = False
        try:
            wanted = (self.plan.continues, socket.number, socket.digest) == (True, self.plan.socket, digest)
            young = not socket.closed and is_young(socket, self._sockets.now())
            usable = wanted and young and await socket.is_alive(self._sockets.timers.validate)
        finally:
            if not usable:
                await socket.close()
        return usable

    def keep(self, socket: Socket, response: str) -> bool:
        """Puts the socket of a complete answer back; False when it is the caller's to close."""
        turn = self._turn
        if turn is None or not response or not self._states.is_current(turn):
            return False
        if not self._sockets.put(turn.owner, socket):
            return False
        self._kept = response, socket.number
        return True

    def record(self, output: Sequence[Mapping[str, Any]]) -> None:
        """Lets the next turn go on from this one. `output`: the answer as input items, as the client will repeat it."""
        if self._turn is None or self._kept is None:
            return
        response, number = self._kept
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
        if current and self._kept is not None and (socket := await self._sockets.take(turn.owner)) is not None:
            await socket.close()
