"""The link between a client and a socket of P1: how fast it is, how long it holds, and how the server watches it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

#: Between two looks for a pong: so short that a busy machine, which is late with both, does not miss one.
LOOKS = 20

#: What the kernel may take in ahead of a slow reader.
AHEAD_BYTES = 64 * 1024


class Link(NamedTuple):
    """None: no limit.

    bytes_per_s  how fast the client's bytes get through
    ping_s       how often the server pings, with a request under way or without
    pong_s       how long the pong may take; then the server closes the socket with 1011
    frames       the socket breaks with this frame of the client, without a close frame
    """

    bytes_per_s: float | None = None
    ping_s: float | None = None
    pong_s: float = 20.0
    frames: int | None = None


class Keepalive:
    """The server's pings on one socket."""

    def __init__(self, every_s: float, within_s: float, ping: Callable[[], Awaitable[None]]) -> None:
        self._every_s = every_s
        self._within_s = within_s
        self._ping = ping
        self._answered = False

    def heard(self) -> None:
        """A pong came."""
        self._answered = True

    async def missed(self) -> None:
        """Returns when a pong did not come in time."""
        while True:
            await asyncio.sleep(self._every_s)
            self._answered = False
            await self._ping()
            for _ in range(LOOKS):
                await asyncio.sleep(self._within_s / LOOKS)
                if self._answered:
                    break
            else:
                return


def slow_down(transport: asyncio.Transport | None, link: Link) -> None:
    """From now on what the client sends is read at the pace of the link."""
    if link.bytes_per_s is not None and transport is not None:
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, AHEAD_BYTES)
        transport.set_protocol(_SlowReader(transport, link.bytes_per_s))


class _SlowReader(asyncio.Protocol):
    """Stands in front of the protocol of a connection, and pauses after each piece as long as the piece takes."""

    def __init__(self, transport: asyncio.Transport, bytes_per_s: float) -> None:
        inner = transport.get_protocol()
        if not isinstance(inner, asyncio.Protocol):
            raise TypeError(type(inner))
        self._transport = transport
        self._inner = inner
        self._bytes_per_s = bytes_per_s
        self.connection_lost = inner.connection_lost  # type: ignore[method-assign]
        self.eof_received = inner.eof_received  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)
        self._transport.pause_reading()
        asyncio.get_running_loop().call_later(len(data) / self._bytes_per_s, self._transport.resume_reading)
