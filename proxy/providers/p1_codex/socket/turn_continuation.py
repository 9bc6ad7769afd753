"""One turn of a conversation that may be continued.

It decides whether an earlier response may be continued, provides its socket, and keeps what the next turn needs. The
order is reliable even for a fast next turn: the socket is back in the pool before the state is recorded, and both
before the client learns that the answer is over. `continuation` holds the rules, `manager` the sockets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proxy.core.identity import Owner
from proxy.off_loop import in_thread_if
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
    """One turn's part in its conversation. Before `reserve` it has none, and keeps nothing.

    enabled  whether continuation is on, so that only the owner is missing
    """

    def __init__(self, sockets: SocketManager, *, enabled: bool) -> None:
        self._sockets = sockets
        self._states = sockets.continuations
        self._turn: ReservedTurn | None = None
        self._plan = ContinuationPlan("missing_identity" if enabled else "disabled")
        self._kept: tuple[str, int] | None = None  # the response, and the number of its socket in the pool

    async def reserve(self, owner: Owner, body: SharedBody) -> None:
        """Makes this a turn of the owner's conversation."""
        limit = self._states.limits.transcript_bytes

        def digested() -> tuple[Transcript | None, bytes]:
            return transcript_of(body.members["input"], limit, body), signature_of(body.members)

        transcript, signature = await in_thread_if(body.large, digested)
        self._turn = self._states.reserve(owner, body.members, transcript, self._sockets.now(), signature)

    @property
    def active(self) -> bool:
        """Whether anything may be kept of this turn."""
        return self._turn is not None

    @property
    def plan(self) -> ContinuationPlan:
        return self._turn.plan if self._turn is not None else self._plan

    def send_whole(self) -> None:
        """Sends the whole conversation, since the response to continue is lost."""
        if self._turn is not None:
            self._turn = full_context(self._turn)

    @property
    def refused_size(self) -> int | None:
        """The size from which frames of this conversation are refused over a socket; None when none was refused."""
        return None if self._turn is None else self._states.refused_size(self._turn.owner, self._sockets.now())

    def refuse(self, size: int) -> None:
        """Notes that the upstream refuses frames of this size over a socket."""
        if self._turn is not None:
            self._states.refuse(self._turn.owner, size, self._sockets.now())

    async def socket(self, digest: bytes) -> Socket | None:
        """The socket that the plan needs, after it answered a ping. None when a fresh one must be opened: the owner's
        socket, if any, is then closed, and the plan is to send the whole conversation.

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
        """Whether the socket can be used. Closes it otherwise, also on errors."""
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
        """Returns the socket of a complete answer to the pool; False when the caller must close it."""
        turn = self._turn
        if turn is None or not response or not self._states.is_current(turn):
            return False
        if not self._sockets.put(turn.owner, socket):
            return False
        self._kept = response, socket.number
        return True

    def record(self, output: Sequence[Mapping[str, Any]]) -> None:
        """Lets the next turn continue from this one. `output`: the answer as input items, as the client will repeat
        it."""
        if self._turn is None or self._kept is None:
            return
        response, number = self._kept
        now = self._sockets.now()
        if self._states.record(self._turn, response=response, socket=number, output=output, now=now):
            self._turn = None

    async def end(self) -> None:
        """Ends the turn. Anything it did not record is forgotten, its socket too."""
        if self._turn is None:
            return
        turn, self._turn = self._turn, None
        current = self._states.is_current(turn)
        self._states.abort(turn)
        if current and self._kept is not None and (socket := await self._sockets.take(turn.owner)) is not None:
            await socket.close()
