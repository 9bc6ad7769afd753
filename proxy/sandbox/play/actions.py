"""What a simulator does with an open answer, one move after the other, and the player that does it.

An event dict is sent as a frame; the classes below are everything else.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from aiohttp import web

from proxy.core.sse import dump_json

#: Events that share one write when nothing is slowed down: fewer system calls, and still a visible stream.
EVENTS_PER_WRITE = 8

#: How often it is looked whether what was written has gone out.
DRAIN_POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are, in a write of their own."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence. As the first move it delays the head of the response as well."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends without the end of the body: closed, or reset."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing more comes, and the connection stays open until the client leaves."""


Move = dict[str, Any] | Raw | Pause | Cut | Stall


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is no stream: JSON, or text when `body` is a string."""

    status: int
    body: Any = ""
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast: `word_delay_s` goes before each delta. `events_per_write` None is 1 when delayed, else the default."""

    word_delay_s: float = 0.0
    events_per_write: int | None = None

    @property
    def batch(self) -> int:
        return self.events_per_write or (1 if self.word_delay_s > 0 else EVENTS_PER_WRITE)


class Framing(NamedTuple):
    """How events become frames, and which of them are words of an answer, for the pace."""

    encode: Callable[[Iterable[Mapping[str, Any]]], bytes]
    is_delta: Callable[[Mapping[str, Any]], bool]


def _encode_named(events: Iterable[Mapping[str, Any]]) -> bytes:
    # not the proxy's own encoder: that one writes the shapes it knows by hand, and a fault may send any other
    return "".join([f"event: {event['type']}\ndata: {dump_json(event)}\n\n" for event in events]).encode()


def _encode_data(events: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join([f"data: {dump_json(event)}\n\n" for event in events]).encode()


#: Events with a name, which is their type; and chunks without one, whose words are in their choices.
NAMED = Framing(_encode_named, lambda event: event["type"].endswith((".delta", "block_delta")))
BARE = Framing(_encode_data, lambda event: any(one.get("delta") for one in event.get("choices") or ()))

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


async def play(
    request: web.Request, headers: Mapping[str, str], moves: Iterable[Move], pace: Pace, framing: Framing = NAMED
) -> web.StreamResponse:
    """Plays the moves as the body of a 200 answer."""
    player = _BodyPlayer(request, headers, framing)
    if await player.perform(moves, pace):
        await player.open()
        await player.response.write_eof()
    return player.response


class Player(ABC):
    """Performs moves on the connection of a request."""

    def __init__(self, request: web.Request, framing: Framing) -> None:
        self.request = request
        self.framing = framing

    @abstractmethod
    async def write(self, data: bytes) -> None: ...

    async def perform(self, moves: Iterable[Move], pace: Pace) -> bool:
        """Whether the connection still stands at the end. Events that follow each other share a write, see `Pace`."""
        batch: list[dict[str, Any]] = []
        for move in moves:
            if isinstance(move, dict):
                if pace.word_delay_s > 0 and self.framing.is_delta(move):
                    await self.send(batch)
                    await asyncio.sleep(pace.word_delay_s)
                batch.append(move)
                if len(batch) >= pace.batch:
                    await self.send(batch)
                continue
            await self.send(batch)
            if isinstance(move, Cut):
                await cut(self.request, reset=move.reset)
                return False
            await self._do(move)
        await self.send(batch)
        return True

    async def send(self, batch: list[dict[str, Any]]) -> None:
        """Sends and empties the batch."""
        if batch:
            data = self.framing.encode(batch)
            batch.clear()
            await self.write(data)

    async def _do(self, move: Raw | Pause | Stall) -> None:
        if isinstance(move, Raw):
            await self.write(move.data)
        elif isinstance(move, Pause):
            await asyncio.sleep(move.seconds)
        else:
            await asyncio.Event().wait()


class _BodyPlayer(Player):
    """The body of a response, whose head goes out with the first thing that is sent."""

    def __init__(self, request: web.Request, headers: Mapping[str, str], framing: Framing) -> None:
        super().__init__(request, framing)
        self.response = web.StreamResponse(headers=headers)

    async def open(self) -> None:
        if not self.response.prepared:
            await self.response.prepare(self.request)

    async def write(self, data: bytes) -> None:
        await self.open()
        await self.response.write(data)


async def drain(transport: asyncio.BaseTransport, most: int = 0) -> None:
    """Returns when at most so many bytes wait to be sent."""
    # transports offer no event for that
    while isinstance(transport, asyncio.WriteTransport) and transport.get_write_buffer_size() > most:  # noqa: ASYNC110
        await asyncio.sleep(DRAIN_POLL_S)


async def cut(request: web.Request, *, reset: bool) -> None:
    """Ends the connection once all that was said before is on its way."""
    transport = request.transport
    if transport is None:
        return
    await drain(transport)
    if reset:
        # lingering for zero seconds turns the close into a reset
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
