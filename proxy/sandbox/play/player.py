"""Performs the actions of an answer on the connection of its request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.play.actions import NAMED, Action, Cut, Framing, Pace, Pause, Raw, Stall, Until

#: Seconds between checks whether written bytes have gone out.
DRAIN_POLL_S = 0.005

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


async def play(
    request: web.Request,
    headers: Mapping[str, str],
    actions: Iterable[Action],
    pace: Pace,
    framing: Framing = NAMED,
    status: int = 200,
) -> web.StreamResponse:
    """Plays the actions as the body of an answer, until the client leaves."""
    player = BodyPlayer(request, headers, framing, status)
    with contextlib.suppress(ConnectionResetError):
        if await player.perform(actions, pace):
            await player.open()
            await player.response.write_eof()
    return player.response


class Player(ABC):
    """Performs actions on the connection of a request."""

    def __init__(self, request: web.Request, framing: Framing) -> None:
        self.request = request
        self.framing = framing

    @abstractmethod
    async def write(self, data: bytes) -> None: ...

    async def perform(self, actions: Iterable[Action], pace: Pace) -> bool:
        """Performs the actions; returns whether the connection is still open. Consecutive events share a write, see
        `Pace`."""
        batch: list[dict[str, Any]] = []
        for action in actions:
            if isinstance(action, dict):
                if pace.word_delay_s > 0 and self.framing.is_delta(action):
                    await self.send(batch)
                    await asyncio.sleep(pace.word_delay_s)
                batch.append(action)
                if len(batch) >= pace.batch:
                    await self.send(batch)
                continue
            await self.send(batch)
            if isinstance(action, Cut):
                await cut(self.request, reset=action.reset)
                return False
            await self._do(action)
        await self.send(batch)
        return True

    async def send(self, batch: list[dict[str, Any]]) -> None:
        """Sends and empties the batch."""
        if batch:
            data = self.framing.encode(batch)
            batch.clear()
            await self.write(data)

    async def until(self, ready: Callable[[], bool]) -> None:
        """Waits for the client. Does nothing for clients that send nothing during an answer."""
        raise NotImplementedError

    async def _do(self, action: Raw | Pause | Stall | Until) -> None:
        if isinstance(action, Raw):
            await self.write(action.data)
        elif isinstance(action, Pause):
            await asyncio.sleep(action.seconds)
        elif isinstance(action, Until):
            await self.until(action.ready)
        else:
            await asyncio.Event().wait()


class BodyPlayer(Player):
    """Writes the body of a response, whose head goes out with the first data."""

    def __init__(self, request: web.Request, headers: Mapping[str, str], framing: Framing, status: int = 200) -> None:
        super().__init__(request, framing)
        self.response = web.StreamResponse(status=status, headers=headers)

    async def open(self) -> None:
        if not self.response.prepared:
            await self.response.prepare(self.request)

    async def write(self, data: bytes) -> None:
        await self.open()
        await self.response.write(data)


async def drain(transport: asyncio.WriteTransport, most: int = 0) -> None:
    """Waits until at most this many bytes wait to be sent."""
    # transports offer no event for that
    while transport.get_write_buffer_size() > most:  # noqa: ASYNC110
        await asyncio.sleep(DRAIN_POLL_S)


async def cut(request: web.Request, *, reset: bool) -> None:
    """Ends the connection once all earlier data is on its way."""
    transport = request.transport
    if transport is None:
        return
    await drain(transport)
    if reset:
        # lingering for zero seconds turns the close into a reset
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
