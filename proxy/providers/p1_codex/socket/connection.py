"""One WebSocket to the backend: sends a frame, reads what has arrived in one go, answers pings."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import WSMessage, WSMsgType

from proxy.core.bodies.decode import load_any_json
from proxy.core.hiding.secret import blanked
from proxy.core.responses_events import ENDS, UNREADABLE
from proxy.core.sizes import LARGE_BYTES
from proxy.providers.p1_codex.socket.frames import MAX_GARBAGE, SIZE
from proxy.providers.upstream.aiohttp_internals import OpenWebSocket

#: A longer message goes out in fragments of this size, and about as much may wait to be sent, here and in the kernel: a
#: pong goes out after what waits, and the backend gives a socket up whose pong takes 20 s. At 10 kB/s this is a few
#: seconds. It is also the size of one TLS record.
FRAGMENT_BYTES = 16 * 1024

#: Most messages that one read returns.
MAX_TAKEN = 256

#: Message types that end a connection.
_ENDS = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED})
#: The reader has already closed the connection.
CLOSED = "closed"


@dataclass(slots=True)
class Reading:
    """The result of one read.

    events  in their order
    pings   the payload to answer, if any
    end     why no more will come: CLOSED, or a key of `frames.FAULTS`
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    pings: list[bytes] = field(default_factory=list)
    end: str | None = None


class Socket:
    """An open connection. It serves one request at a time, and its current holder reads it.

    number   unique in the process
    born     a moment of the loop's clock
    digest   of how it was opened, see `connect.upgrade_digest`
    headers  of the answer to the upgrade
    closes   called once, when it is closed
    """

    def __init__(
        self,
        connection: OpenWebSocket,
        *,
        number: int,
        born: float,
        digest: bytes,
        close_s: float,
        closes: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._closes: Callable[[], None] | None = closes
        self._close_s = close_s
        self._garbage = 0
        self._checks = 0
        self._flooded = False
        self._left: list[WSMessage] = []
        _let_little_wait(connection.transport)
        self.number = number
        self.born = born
        self.digest = digest
        self.headers = connection.headers

    @property
    def upstream_id(self) -> str | None:
        """The upstream's name for the upgrade."""
        return blanked(self.headers.get("x-request-id", "")) or None

    @property
    def closed(self) -> bool:
        return self._connection.lost

    async def send(self, message: bytes, moved: Callable[[], None]) -> None:
        """Sends a text, in fragments if it is long. Between them the socket may be read and pings answered. A single
        fragment is sent without waiting. Raises OSError, aiohttp.ClientError.

        moved  called after each fragment
        """
        view, size = memoryview(message), len(message)
        for start in range(0, size, FRAGMENT_BYTES):
            end = start + FRAGMENT_BYTES
            self._connection.write_fragment(view[start:end], first=start == 0, last=end >= size)
            if end < size:
                await self._connection.drain()
                await asyncio.sleep(0)  # lets others read and write even when nothing blocks the writing
                moved()

    async def ping(self, payload: bytes = b"") -> None:
        """Sends a ping. Raises OSError, aiohttp.ClientError."""
        await self._connection.ping(payload)

    async def pong(self, payload: bytes) -> None:
        """Answers a ping. Raises OSError, aiohttp.ClientError."""
        await self._connection.pong(payload)

    async def read(self) -> Reading:
        """Waits for a message, and takes up to MAX_TAKEN that arrived together with it. When cancelled, it leaves all
        messages to the next call."""
        if self._flooded:
            await asyncio.sleep(0)  # so that a flood of small frames does not hold the loop
        self._flooded = False
        messages = self._left or [await self._connection.receive()]
        while messages[-1].type not in _ENDS and messages[-1].type is not WSMsgType.ERROR:
            if len(messages) == MAX_TAKEN:
                self._flooded = True
                break
            message = self._connection.receive_nowait()
            if message is None:
                break
            messages.append(message)
        self._left = messages
        long = {
            place: await asyncio.to_thread(_event, message.data)
            for place, message in enumerate(messages)
            if message.type is WSMsgType.TEXT and len(message.data) > LARGE_BYTES
        }
        self._left = []
        return self._understand(messages, long)

    async def idle(self) -> None:
        """Answers pings until anything else comes; then the socket can no longer be used. When cancelled, it leaves
        what has come since to the next reader."""
        try:
            while not self._garbage:
                reading = await self.read()
                if reading.events or reading.end is not None:
                    return
                for payload in reading.pings:
                    await self.pong(payload)
        except (aiohttp.ClientError, OSError):
            pass

    async def is_alive(self, within_s: float) -> bool:
        """Whether a waiting socket answers our ping and sends nothing else. The answer to an earlier ping may come
        first."""
        self._checks += 1
        payload = b"%d.%d" % (self.number, self._checks)
        try:
            async with asyncio.timeout(within_s):
                await self.ping(payload)
                while True:
                    message = await self._connection.receive()
                    if message.type is WSMsgType.PONG:
                        if message.data == payload:
                            return True
                    elif message.type is WSMsgType.PING:
                        await self._connection.pong(message.data)
                    else:
                        return False
        except (TimeoutError, aiohttp.ClientError, OSError):
            return False

    async def close(self) -> None:
        """Closes in the usual way; after a short time closes at once, whatever still waits to be sent."""
        closes, self._closes = self._closes, None
        if closes is not None:
            closes()
        transport = self._connection.transport  # the library forgets it while closing
        try:
            async with asyncio.timeout(self._close_s):
                await self._connection.close()
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass
        finally:
            if transport is not None:
                transport.abort()

    def _understand(self, messages: Iterable[WSMessage], long: Mapping[int, dict[str, Any] | None]) -> Reading:
        """Reads messages as events. `long`: already read events, by their places."""
        reading = Reading()
        for place, message in enumerate(messages):
            if message.type is WSMsgType.TEXT:
                event = long[place] if place in long else _event(message.data)
                if event is not None:
                    self._garbage = 0
                    reading.events.append(event)
                    continue
                reading.events.append(UNREADABLE)
                self._garbage += 1
                if self._garbage > MAX_GARBAGE:
                    reading.end = "ws_garbage"
                elif any(name in message.data[:_HEAD] for name in ENDS):
                    reading.end = "ws_last"  # nothing follows it
            elif message.type is WSMsgType.PING:
                reading.pings = [message.data]  # the newest of several is the one to answer
            elif message.type is not WSMsgType.PONG:
                reading.end = _end_of(message)
                if reading.end == CLOSED and self._garbage:  # what was cut may have been an event
                    reading.end = "ws_cut"
            if reading.end is not None:
                break
        return reading


#: Within so many characters an event names its type.
_HEAD = 120


def _let_little_wait(transport: asyncio.Transport | None) -> None:
    """Bounds what waits to be sent, see FRAGMENT_BYTES. Systems without such a bound rely on their own."""
    if transport is None:
        return
    transport.set_write_buffer_limits(high=FRAGMENT_BYTES)
    option, raw = getattr(socket, "TCP_NOTSENT_LOWAT", None), transport.get_extra_info("socket")
    if option is not None and raw is not None:
        with suppress(OSError):
            raw.setsockopt(socket.IPPROTO_TCP, option, FRAGMENT_BYTES)


def _event(text: str) -> dict[str, Any] | None:
    try:
        event = load_any_json(text)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _end_of(message: WSMessage) -> str:
    if message.type in _ENDS:
        return SIZE if message.data == aiohttp.WSCloseCode.MESSAGE_TOO_BIG else CLOSED
    if message.type is WSMsgType.BINARY:
        return "ws_binary"
    code = getattr(message.data, "code", None)
    if code is None:  # an error of the connection, not of its content
        return CLOSED
    return "ws_too_large" if code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG else "ws_protocol"
