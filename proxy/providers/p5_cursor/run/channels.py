"""The two channels of a run over HTTP/1.1: a stream that the service talks on, and a call for each message of ours.

The service drops a number that it knows, and a message that is sent again may be heard twice: so there is one counter
and one task that sends, and a failure ends the run.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import Any

import aiohttp

from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.observe.capture.contract import NULL_ATTEMPT, AttemptCapture, RequestCapture
from proxy.observe.timings import Timings
from proxy.providers.contract import Services
from proxy.providers.p5_cursor.failures import HOST_CURE, PROFILE, document_error, refusal
from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.providers.p5_cursor.wire.envelopes import (
    LONG_BYTES,
    Envelope,
    EnvelopeDecoder,
    EnvelopeError,
    call_headers,
    envelope,
)
from proxy.providers.p5_cursor.wire.protobuf import encode
from proxy.providers.upstream.aiohttp_internals import UnpacksTooLarge
from proxy.providers.upstream.client import MAX_ERROR_BYTES, in_pieces, read_error
from proxy.providers.upstream.transport import unreachable

STREAM_PATH = "/agent.v1.AgentService/RunSSE"
APPEND_PATH = "/aiserver.v1.BidiService/BidiAppend"
STREAM_TYPE = "application/connect+proto"
APPEND_TYPE = "application/proto"

#: As the vendor's client has it: envelopes may be packed, the stream of them is not.
_PACKED = {"connect-accept-encoding": "gzip", "accept-encoding": "identity"}

#: Bodies up to this size are written at once, in bytes.
_PIECE = 64 * 1024

#: No connection came to be, so nothing of the request was sent and it may be tried once more.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class Channels:
    """Both channels of the run `id`.

    token, version  the access token, and the build of the vendor's client that the service is told
    timings         of the request that begins the run
    """

    def __init__(
        self, services: Services, base_url: str, token: str, version: str, timers: RunTimers, timings: Timings
    ) -> None:
        self.id = str(uuid.UUID(services.new_id()))
        self._services = services
        self._session = services.client_for(base_url)
        self._base_url = base_url
        self._token = token
        self._version = version
        self._timers = timers
        self._timings = timings

    def attempt(self, capture: RequestCapture, message: Mapping[str, Any], **details: Any) -> AttemptCapture:
        """Tells what a request begins or goes on with. It is not the body of the stream's own call, which only names
        the run."""
        url, headers = f"{self._base_url}{STREAM_PATH}", self._headers(self.id, STREAM_TYPE)
        return capture.attempt(
            transport="connect", method="POST", url=url, headers=headers, body=message, run=self.id, **details
        )

    async def open(self, told: AttemptCapture) -> aiohttp.ClientResponse:
        """The stream, whose head has come: `release` it. Raises UpstreamError."""
        headers = self._headers(self.id, STREAM_TYPE) | _PACKED
        body = envelope(encode("BidiRequestId", {"request_id": self.id}))
        response = await self._post(STREAM_PATH, headers, body, self._timers.headers, self._timings)
        self._timings.answered(self.id)  # the name that the service has for it from us
        told.answered(response.status, response.headers)
        if response.status != 200:
            raise await self._refusal(response, STREAM_TYPE, told)
        return response

    async def append(self, number: int, message: bytes) -> None:
        """Sends one message; its answer says nothing but that it came. Raises UpstreamError, of which none is worth
        another try: the run had begun."""

        def write() -> bytes:
            # a little at a time: no other thread runs while a piece is written
            data = "".join(message[at : at + _PIECE].hex() for at in range(0, len(message), _PIECE))
            run = {"request_id": self.id}
            return encode("BidiAppendRequest", {"data": data, "request_id": run, "append_seqno": number})

        # pictures take long enough for others to notice
        body = await asyncio.to_thread(write) if len(message) > _PIECE else write()
        headers = self._headers(str(uuid.UUID(self._services.new_id())), APPEND_TYPE)
        response = await self._post(APPEND_PATH, headers, body, self._timers.append)
        if response.status != 200:
            raise (await self._refusal(response, APPEND_TYPE, NULL_ATTEMPT)).replaced(repeatable=False)
        await read_error(response)
        response.release()

    def _headers(self, call_id: str, content_type: str) -> dict[str, str]:
        return call_headers(self._token, self._version, call_id, self.id, content_type)

    async def _refusal(self, response: aiohttp.ClientResponse, sent: str, told: AttemptCapture) -> UpstreamError:
        """The error behind an answer that is none, which is given back."""
        body = await read_error(response)
        told.refused(body)
        response.close()
        types = f"sent {sent}, answered {response.headers.get('content-type', 'no content type')}"
        waits = response.headers.get("retry-after")
        return refusal(response.status, waits, body, types, now=self._services.clock())

    async def _post(
        self, path: str, headers: dict[str, str], body: bytes, limit_s: float, timings: Timings | None = None
    ) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(limit_s) as timer:
                try:
                    return await self._send(path, in_pieces(body, headers, timer, limit_s), timings)
                except _NOT_SENT as error:
                    if isinstance(error, aiohttp.ClientConnectorCertificateError):
                        raise
                    return await self._send(path, in_pieces(body, headers, timer, limit_s), timings)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            failure = unreachable(PROFILE, error, limit_s).replaced(repeatable=False)
            late = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError)
            raise failure.replaced(kind="upstream_timeout") if late else failure from None

    async def _send(
        self, path: str, sent: tuple[Any, dict[str, str]], timings: Timings | None
    ) -> aiohttp.ClientResponse:
        data, headers = sent
        url = f"{self._base_url}{path}"
        return await self._session.post(
            url, data=data, headers=headers, allow_redirects=False, trace_request_ctx=timings
        )


#: What a stream of envelopes can begin with; anything else is a document.
_FLAGS = frozenset({0, 1, 2, 3, 0x80, 0x81})


class EnvelopeStream:
    """Reads one. `read` raises UpstreamError for what is no stream, or breaks."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._decoder = EnvelopeDecoder()
        self._begun = False

    @property
    def cut(self) -> bool:
        """Whether it ended inside an envelope."""
        return self._decoder.pending

    async def read(self, limit_s: float | None = None) -> list[Envelope] | None:
        """The envelopes that the next piece completes; None at the end, or when nothing came for `limit_s`."""
        found = await self._fed(b"")  # what stood behind the last ones; if it is no envelope, nothing may follow it
        if found:
            return found
        try:
            async with asyncio.timeout(limit_s):
                chunk = await self._response.content.readany()
        except TimeoutError:
            return None
        except UnpacksTooLarge as error:
            raise unreadable(error) from None
        except (aiohttp.ClientError, OSError):
            raise cut_off("the connection broke") from None
        if not chunk:
            self._check_end()
            return None
        if not self._begun and chunk[0] not in _FLAGS:
            raise document_error((chunk + await read_error(self._response))[:MAX_ERROR_BYTES])
        self._begun = True
        return await self._fed(chunk)

    async def _fed(self, chunk: bytes) -> list[Envelope]:
        """The envelopes in front of one that takes long to unpack; or those from that one on."""
        found = [] if self._decoder.waits else self._decoded(chunk, LONG_BYTES)
        if found or not self._decoder.waits:
            return found
        return await asyncio.to_thread(self._decoded, b"", inf)

    def _decoded(self, chunk: bytes, most_packed: float) -> list[Envelope]:
        try:
            return self._decoder.feed(chunk, most_packed=most_packed)
        except EnvelopeError as error:
            raise unreadable(error) from None

    def _check_end(self) -> None:
        if not self._begun:
            words = f"the service closed the stream without an answer ({HOST_CURE})"
            raise PROFILE.error(words, kind="transport", repeatable=False, code=PROTOCOL_ERROR)

    def close(self) -> None:
        self._response.close()


def cut_off(why: str) -> UpstreamError:
    """The error of a stream that ended too early."""
    words = f"the upstream cut the answer: {why}"
    return PROFILE.error(words, kind="transport", repeatable=False, code=PROTOCOL_ERROR)


def unreadable(error: Exception) -> UpstreamError:
    """The error of one that is not what it should be."""
    return PROFILE.error(f"unreadable answer: {error}", kind="bad_answer", repeatable=False, code=PROTOCOL_ERROR)


#: Bytes of messages that wait to be sent; what asks for more answers is not read on until they are fewer.
MAX_WAITING_BYTES = 8 * 1024 * 1024


class Appends:
    """The messages of one run.

    send    sends one: `(number, message)`. Raises ProxyError
    failed  is told why a message could not be sent; none is sent after it
    """

    def __init__(self, send: Callable[[int, bytes], Awaitable[None]], failed: Callable[[Exception], None]) -> None:
        self._send = send
        self._failed = failed
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._next = 0
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._closed = False

    @property
    def sent(self) -> int:
        """How many messages were sent."""
        return self._next

    def put(self, message: bytes | dict[str, Any]) -> None:
        """A message, behind those that wait; none is taken any more after `stop`."""
        if self._closed:
            return
        data = message if isinstance(message, bytes) else encode("AgentClientMessage", message)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > MAX_WAITING_BYTES:
            self._room.clear()
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    def beat(self, message: dict[str, Any]) -> None:
        """A sign of life, unless something waits that is one as well."""
        if not self._waiting:
            self.put(message)

    async def room(self) -> None:
        """Returns when more may wait."""
        await self._room.wait()

    async def settled(self) -> None:
        """Returns when everything was sent, or cannot be."""
        while self._task is not None and not self._closed:
            await asyncio.wait({self._task})

    def stop(self) -> None:
        """Nothing more is sent; what is on its way is not called back."""
        self._closed = True
        self._waiting.clear()
        self._room.set()

    async def close(self) -> None:
        """Ends the task, whatever it is doing."""
        self.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        """Sends what waits, then ends: a run that is silent has no task for it."""
        try:
            while self._waiting:
                data = self._waiting[0]
                number, self._next = self._next, self._next + 1
                await self._send(number, data)
                if self._waiting:
                    self._waiting.popleft()
                    self._size -= len(data)
                if self._size <= MAX_WAITING_BYTES:
                    self._room.set()
        except Exception as error:
            self.stop()
            self._failed(error)
        finally:
            self._task = None
