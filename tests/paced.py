"""A relay in front of an upstream that has the proxy read each event alone.

What an upstream says at once is read at once, and is one batch for whatever passes it on. So the relay sends what ends
an event, waits until the proxy has read it and has done with it what it does, and only then sends the next.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from proxy.providers.upstream.aiohttp_internals import WatchedProtocol

HOST = "127.0.0.1"
#: What ends with an event, or with the head of an answer; and the rest.
_PIECES = re.compile(rb".+?(?:\n\n|\r\n\r\n|\r\r|\Z)", re.DOTALL)
#: Turns of the loop that a piece mostly takes, and longer ones: the proxy may count tokens, or want no more.
_TURNS, _LONG_TURNS, _TURN_S = 20, 150, 0.001


class _Said(asyncio.Protocol):
    """What the upstream says: bytes, then b"" or the error that ended it."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | Exception] = asyncio.Queue()

    def data_received(self, data: bytes) -> None:
        self.queue.put_nowait(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.queue.put_nowait(exc or b"")


class Paced:
    """The relay, which listens on `port`. Connections of the proxy are known by their own ports."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._read = Counter[int]()
        self._open: dict[int, WatchedProtocol] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, 0, limit=1 << 24)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def arrived(self, protocol: WatchedProtocol, data: bytes) -> None:
        """Notes that the proxy has read data, and is done with what it does with them at once."""
        if protocol.transport is not None:
            own = protocol.transport.get_extra_info("sockname")[1]
            self._open[own] = protocol
            self._read[own] += len(data)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, said = await asyncio.get_running_loop().create_connection(_Said, HOST, self._upstream)
        asking = asyncio.create_task(_pass(reader, upstream))
        own, sent = writer.get_extra_info("peername")[1], 0
        self._read[own] = 0
        try:
            while data := await said.queue.get():
                if isinstance(data, Exception):
                    writer.transport.abort()
                    return
                for piece in _PIECES.findall(data):
                    writer.write(piece)
                    sent += len(piece)
                    await self._taken(own, sent, writer)
        finally:
            asking.cancel()
            upstream.abort()
            writer.close()

    async def _taken(self, own: int, sent: int, writer: asyncio.StreamWriter) -> None:
        for turn in range(_TURNS + _LONG_TURNS):
            if writer.transport.is_closing():
                return
            body: Any = self._open[own]._payload if own in self._open else None
            if self._read[own] >= sent and not getattr(body, "_buffer", None):
                break
            await asyncio.sleep(0 if turn < _TURNS else _TURN_S)
        for _ in range(2):  # of the tasks that the piece woke
            await asyncio.sleep(0)


async def _pass(reader: asyncio.StreamReader, upstream: asyncio.Transport) -> None:
    try:
        while data := await reader.read(65536):
            upstream.write(data)
    except ConnectionError:
        pass
    upstream.abort()


@asynccontextmanager
async def paced(upstream: int) -> AsyncIterator[Paced]:
    """A relay to a port of this machine."""
    relay, received = Paced(upstream), WatchedProtocol.data_received

    def data_received(self: WatchedProtocol, data: bytes) -> None:
        received(self, data)
        relay.arrived(self, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WatchedProtocol, "data_received", data_received)
        await relay.start()
        try:
            yield relay
        finally:
            await relay.stop()
