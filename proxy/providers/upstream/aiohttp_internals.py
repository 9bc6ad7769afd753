"""All uses of aiohttp beyond its documented interface.

    ready_for_tls       waits for the certificates of the TLS context that checks those of peers
    HookedConnector     passes every connection of a session to a method of ours before it is opened, informs the reader
                        of an answer at once when it breaks, and does not reuse it after an unrequested message; a
                        tunnel is open whatever 2xx the proxy answers with; reports how long one took to open
    BodyResponse        an answer whose body returns what arrived before it raises the fault, in errors of one kind, and
                        in pieces between which other tasks run
    read_past           waits for the next piece of a body that a function does not take where it arrives
    lead_through_proxy  gives a request its proxy after the session built it
    UpgradeResponse     the answer to an upgrade with header lists that aiohttp takes for single tokens
    OpenWebSocket       the transport of a WebSocket, the headers of its upgrade, messages that have arrived, and
                        messages in fragments

`tests/providers/upstream/test_aiohttp_internals.py` shows which of these an aiohttp release changed.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp import WSMessage, WSMsgType, hdrs
from aiohttp._websocket.helpers import websocket_mask
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import _SSL_CONTEXT_VERIFIED
from aiohttp.connector import Connection as Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.tracing import Trace
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from proxy.core.sizes import MAX_RATIO, most_unpacked
from proxy.observe.timings import CONNECTING
from proxy.providers.upstream.certificates import certificates_read

#: Most bytes of a body returned at once: packed content is unpacked as it is read, and may be a thousand times as long.
PIECE_BYTES = 32 * 1024

#: Opens the connection for a request. Raises aiohttp's errors.
Connect = Callable[[], Awaitable[Connection]]
#: Takes a piece of a body where it arrives; False if the reader of the body must have it.
TakePiece = Callable[[bytes], bool]


async def ready_for_tls() -> None:
    """Waits for the certificates that peers are checked with, see `certificates`."""
    await certificates_read(_SSL_CONTEXT_VERIFIED)


class WatchedProtocol(ResponseHandler):
    """One connection. aiohttp's own forgets the body that is being read when its parser gives up. The reader then waits
    on, or finds the connection closed without a reason.

    take  takes what arrives of the body, while its reader waits for what is not taken"""

    take: TakePiece | None = None

    def data_received(self, data: bytes) -> None:
        body, take = self._payload, self.take
        waiter = body._waiter if take is not None and body is not None else None
        if take is None or body is None or waiter is None:
            super().data_received(data)
            return
        body._waiter = None  # else feeding the body would wake its reader
        super().data_received(data)
        if not waiter.done():
            _offer(body, take, waiter)

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused:  # each read of a body calls this, and has the parser look for more
            super().resume_reading(resume_parser)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        body = self._payload
        super().set_exception(exc, *cause)
        _break_off(body, exc)

    def connection_lost(self, exc: BaseException | None) -> None:
        body = self._payload
        super().connection_lost(exc)
        _break_off(body, exc)

    def eof_received(self) -> None:
        super().eof_received()
        # The connection would stay until the peer, which may read no more, has taken what is still to be sent.
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.transport.abort()


def _break_off(body: object, cause: BaseException | None) -> None:
    """Fails a body that will get no more bytes, unless its reader already knows."""
    if isinstance(body, aiohttp.StreamReader) and not body.is_eof() and body.exception() is None:
        body.set_exception(_broken_off(cause))


def _offer(body: aiohttp.StreamReader, take: TakePiece, waiter: asyncio.Future[Any]) -> None:
    """Gives `take` what has arrived of a body. Wakes the reader with a piece that was not taken, and with None for
    anything else."""
    piece = None
    if body._exception is None and not body._eof and body._size <= PIECE_BYTES:
        piece = body._read_nowait(-1) if body._buffer else b""
        if not piece or take(piece):
            piece = None
            # to read may also have let more of the body in
            if not body._buffer and body._exception is None and not body._eof:
                body._waiter = waiter
                return
    waiter.set_result(piece)


class HookedConnector(aiohttp.TCPConnector):
    """A connector whose connections all pass `connect_for`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = cast("partial[ResponseHandler]", partial(WatchedProtocol, loop=self._loop))

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        await ready_for_tls()
        connect = partial(super().connect, req, traces, timeout)
        connection = await self.connect_for(req, connect)
        # Anything after the end of an answer would be taken for the beginning of the next.
        while connection.protocol is not None and connection.protocol.should_close:
            connection.close()
            connection = await self.connect_for(req, connect)
        return connection

    async def connect_for(self, request: aiohttp.ClientRequest, connect: Connect) -> Connection:
        """A connection for a request; `connect` opens it."""
        return await connect()

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        # aiohttp's own way to see this, a trace, costs every request 25 µs
        timings = CONNECTING.get()
        if timings is None:
            return await super()._create_connection(req, traces, timeout)
        timings.connecting()
        protocol = await super()._create_connection(req, traces, timeout)
        timings.connected()
        return protocol

    def _update_proxy_auth_header_and_build_proxy_req(self, req: aiohttp.ClientRequest) -> aiohttp.ClientRequest:
        asked = super()._update_proxy_auth_header_and_build_proxy_req(req)
        asked.response_class = _TunnelResponse
        return asked


class _TunnelResponse(aiohttp.ClientResponse):
    """The answer to CONNECT. Any 2xx opens the tunnel (RFC 9110, 9.3.6); aiohttp accepts only 200."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        await super().start(connection)
        if 200 < self.status < 300:
            self.status = 200
        return self


def lead_through_proxy(request: aiohttp.ClientRequest, proxy: str, headers: Mapping[str, str]) -> None:
    """Sends a request through a proxy: in a tunnel when its destination uses TLS, else in absolute form.

    headers  only the proxy may see them
    """
    # Those headers go with CONNECT only. The credential is not in the URL, which aiohttp quotes in its errors.
    request.update_proxy(URL(proxy), None, headers)
    if not request.is_ssl():
        request.headers.update(headers)
        request.url = request.url.with_scheme("http")  # as a proxy expects; aiohttp would write ws:// there


class UnpacksTooLarge(aiohttp.ClientPayloadError):
    """A small body that unpacks to more than any answer needs."""

    def __init__(self) -> None:
        super().__init__(f"the answer unpacks to more than {MAX_RATIO} times the bytes that came")


class _Body(aiohttp.StreamReader):
    """The body of an answer. aiohttp's own raises errors of its parser and of the language besides its ClientError, and
    withholds what arrived before them. It also returns all waiting bytes at once, without letting other tasks run."""

    __slots__ = ()

    async def readany(self) -> bytes:
        if self._size > PIECE_BYTES:
            await asyncio.sleep(0)
        packed = self.total_compressed_bytes
        if packed is not None and self.total_bytes > most_unpacked(packed):
            raise UnpacksTooLarge
        if self._exception is not None and self._buffer:
            return self._read_nowait(PIECE_BYTES)
        try:
            return await super().read(PIECE_BYTES)
        except (HttpProcessingError, RuntimeError) as error:
            raise _broken_off(error) from None

    async def past(self, take: TakePiece) -> bytes:
        """The next piece that `take` does not take, which must not raise."""
        protocol = self._protocol
        nothing_came = not self._buffer and not self._eof and self._exception is None
        plain = self.total_compressed_bytes is None and protocol.connected
        if not (nothing_came and plain and isinstance(protocol, WatchedProtocol)):
            return await self.readany()
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._waiter, protocol.take = waiter, take
        try:
            with self._timer:
                piece: bytes | None = await waiter
        except (HttpProcessingError, RuntimeError) as error:
            raise _broken_off(error) from None
        finally:
            self._waiter = protocol.take = None
        return await self.readany() if piece is None else piece


def _broken_off(cause: BaseException | None) -> aiohttp.ClientPayloadError:
    return aiohttp.ClientPayloadError(f"the answer broke off ({type(cause).__name__})")


async def read_past(body: aiohttp.StreamReader, take: TakePiece) -> bytes:
    """The next piece of a body, b"" at its end, as `readany`. Pieces that `take` accepts are not returned: it is called
    where they arrive, without a task, and must not raise."""
    return await (body.past(take) if isinstance(body, _Body) else body.readany())


class BodyResponse(aiohttp.ClientResponse):
    """An answer whose body is read by `content.readany` or `content.iter_any`, which raise aiohttp.ClientError or
    OSError."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        await super().start(connection)
        if type(self.content) is aiohttp.StreamReader:
            self.content.__class__ = _Body
        return self


#: Headers of an upgrade that are lists of tokens, and the one that has to be among them.
_TOKENS = {hdrs.UPGRADE: "websocket", hdrs.CONNECTION: "upgrade"}


class UpgradeResponse(BodyResponse):
    """The answer to an upgrade in a form that aiohttp understands: it takes token lists for single tokens."""

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        headers = CIMultiDict(super().headers)
        for name, token in _TOKENS.items():
            given = ",".join(headers.getall(name, [])).lower().split(",")
            if token in map(str.strip, given):
                headers[name] = token
        return CIMultiDictProxy(headers)


#: In the first byte of a frame: the message ends here. In the second: the payload is masked.
_FINAL, _MASKED = 0x80, 0x80
#: Up to here the length is in the second byte; longer ones follow it, in two bytes or eight.
_SHORT, _MEDIUM = 125, 0xFFFF


def _masked_head(first_byte: int, size: int) -> bytes:
    """The beginning of a client's frame, without the mask."""
    if size <= _SHORT:
        return struct.pack("!BB", first_byte, _MASKED | size)
    if size <= _MEDIUM:
        return struct.pack("!BBH", first_byte, _MASKED | (_SHORT + 1), size)
    return struct.pack("!BBQ", first_byte, _MASKED | (_SHORT + 2), size)


class OpenWebSocket(aiohttp.ClientWebSocketResponse[Any]):
    """aiohttp's WebSocket, with access to its private parts."""

    @property
    def transport(self) -> asyncio.Transport | None:
        return self._conn.transport if self._conn is not None else None

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer to the upgrade."""
        return self._response.headers

    @property
    def lost(self) -> bool:
        return self.closed or self.transport is None or self.transport.is_closing()

    def write_fragment(self, payload: memoryview, *, first: bool, last: bool) -> None:
        """Writes a piece of a text message without waiting; aiohttp's own writer can only send a message whole. Raises
        ClientConnectionResetError."""
        transport = self.transport
        if self.lost or transport is None:
            raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
        kind = (WSMsgType.TEXT if first else WSMsgType.CONTINUATION) | (_FINAL if last else 0)
        mask, masked = os.urandom(4), bytearray(payload)
        websocket_mask(mask, masked)
        transport.write(_masked_head(kind, len(masked)) + mask + masked)

    async def drain(self) -> None:
        """Waits until more may be written. Raises OSError, aiohttp.ClientError."""
        await self._writer.protocol._drain_helper()

    def receive_nowait(self) -> WSMessage | None:
        """A message that has already arrived, None when there is none. aiohttp has no call for that. But its `receive`
        returns such a message without waiting, so one step of it is enough to know."""
        reading = self.receive()
        try:
            reading.send(None)
        except StopIteration as stop:
            message: WSMessage = stop.value
            return message
        try:
            reading.throw(asyncio.CancelledError())
        except asyncio.CancelledError:
            pass
        return None
