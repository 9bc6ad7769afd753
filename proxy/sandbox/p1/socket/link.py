"""The sockets of P1: the open ones, the limits for another, and the link of each to its client.

A link has a speed, may break, and is watched by the server.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from proxy.sandbox.upstream import KEPT_REQUESTS, Socket
from proxy.sandbox.wires.refusal import Refused, invalid
from proxy.sandbox.wires.responses.answer import error_object

#: Checks for a pong within its time: so many that a busy machine, which is late with both, does not miss one.
LOOKS = 20

#: Bytes that the kernel may accept ahead of a slow reader.
AHEAD_BYTES = 64 * 1024


class Link(NamedTuple):
    """The connection of a socket to its client. None: no limit.

    bytes_per_s  speed of the client's bytes
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
        """Notes a pong."""
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
    """Reads the client's data at the pace of the link from now on."""
    if link.bytes_per_s is not None and transport is not None:
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, AHEAD_BYTES)
        transport.set_protocol(_SlowReader(transport, link.bytes_per_s))


class _SlowReader(asyncio.Protocol):
    """Wraps a connection's protocol, and pauses after each piece for as long as the piece takes."""

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


#: Seconds in which upgrades are counted.
BURST_S = 1.0

#: Times of upgrades that are kept: a higher limit has no effect.
MAX_TIMES = 10_000


class Limits(NamedTuple):
    """Limits of upgrades. None: no limit."""

    per_second: int | None = None
    most_open: int | None = None


class Sockets:
    """The sockets of an upstream. `seen` are the last upgrades, refused ones too, oldest first; `total` counts all."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.seen: deque[Socket] = deque(maxlen=KEPT_REQUESTS)
        self.total = 0
        self.open = 0
        self.most_open = 0  # most at the same time
        self._numbers = itertools.count(1)
        self._times: deque[float] = deque(maxlen=MAX_TIMES)

    def register(self, headers: Mapping[str, str]) -> Socket:
        """Counts an upgrade; sockets are numbered from 1."""
        socket = Socket(next(self._numbers), headers)
        self.total += 1
        self.seen.append(socket)
        self._times.append(self.clock())
        return socket

    def over(self, limits: Limits) -> bool:
        """Whether the last upgrade is one too many. The rate counts refused ones too."""
        since = self.clock() - BURST_S
        while self._times and self._times[0] <= since:
            self._times.popleft()
        burst = limits.per_second is not None and len(self._times) > limits.per_second
        return burst or (limits.most_open is not None and self.open >= limits.most_open)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Counts a socket as open."""
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            yield
        finally:
            self.open -= 1


def too_old() -> Refused:
    error = error_object("websocket_connection_limit_reached", type="invalid_request_error")
    return Refused(400, {"error": error})


def not_found(previous: str) -> Refused:
    return invalid(
        f"Previous response with id '{previous}' not found.",
        code="previous_response_not_found",
        param="previous_response_id",
    )
