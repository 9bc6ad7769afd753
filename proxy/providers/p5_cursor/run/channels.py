"""The two channels of a run over HTTP/1.1: a stream from the service, and a call for each message of ours.

The service drops a number that it knows, and a repeated message may take effect twice. So there is one counter and one
sending task, and a failure ends the run.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import Any

import aiohttp

from proxy.core.sizes import LARGE_BYTES
from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.observe.capture.contract import NULL_ATTEMPT, AttemptCapture, RequestCapture
from proxy.observe.timings import Timings
from proxy.off_loop import in_thread_if
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
from proxy.providers.upstream.client import MAX_ERROR_BYTES, in_pieces, post, read_error
from proxy.providers.upstream.transport import unreachable

STREAM_PATH = "/agent.v1.AgentService/RunSSE"
APPEND_PATH = "/aiserver.v1.BidiService/BidiAppend"
STREAM_TYPE = "application/connect+proto"
APPEND_TYPE = "application/proto"

#: As in the vendor's client: envelopes may be packed, their stream is not.
_PACKED = {"connect-accept-encoding": "gzip", "accept-encoding": "identity"}

#: Bytes that are written at once, at most.
_PIECE = 64 * 1024

#: No connection was made, so nothing of the request was sent and it may be tried once more.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class Channels:
    """Both channels of the run `id`.

    token, version  the access token, and the build of the vendor's client to name
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
        """Records what a request begins or continues with. The stream's own call has another body, which only names the
        run."""
        url, headers = f"{self._base_url}{STREAM_PATH}", self._headers(self.id, STREAM_TYPE)
        return capture.attempt(
            transport="connect", method="POST", url=url, headers=headers, body=message, run=self.id, **details
        )

    async def open(self, capture: AttemptCapture) -> aiohttp.ClientResponse:
        """Opens the stream, and returns once its head has come; the caller must `release` it. Raises UpstreamError."""
        headers = self._headers(self.id, STREAM_TYPE) | _PACKED
        body = envelope(encode("BidiRequestId", {"request_id": self.id}))
        response = await self._post(STREAM_PATH, headers, body, self._timers.headers, self._timings)
        self._timings.answered(self.id)  # our name for it at the service
        capture.answered(response.status, response.headers)
        if response.status != 200:
            raise await self._refusal(response, STREAM_TYPE, capture)
        return response

    async def append(self, number: int, message: bytes) -> None:
        """Sends one message, which the service only acknowledges. Raises UpstreamError, never one to repeat: the run
        had begun."""

        def write() -> bytes:
            # in pieces, since no other thread runs while one is converted
            data = "".join(message[at : at + _PIECE].hex() for at in range(0, len(message), _PIECE))
            run = {"request_id": self.id}
            return encode("BidiAppendRequest", {"data": data, "request_id": run, "append_seqno": number})

        # pictures take long enough for others to notice
        body = await in_thread_if(len(message) > LARGE_BYTES, write)
        headers = self._headers(str(uuid.UUID(self._services.new_id())), APPEND_TYPE)
        response = await self._post(APPEND_PATH, headers, body, self._timers.append)
        if response.status != 200:
            raise (await self._refusal(response, APPEND_TYPE, NULL_ATTEMPT)).replaced(repeatable=False)
        await read_error(response)
        response.release()

    def _headers(self, call_id: str, content_type: str) -> dict[str, str]:
        return call_headers(self._token, self._version, call_id, self.id, content_type)

    async def _refusal(self, response: aiohttp.ClientResponse, sent: str, capture: AttemptCapture) -> UpstreamError:
        """The error for a non-success response, which is closed."""
        body = await read_error(response)
        capture.refused(body)
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
        return await post(self._session, f"{self._base_url}{path}", data, headers, timings)


#: Bytes that a stream of envelopes can begin with; anything else is a document.
_FLAGS = frozenset({0, 1, 2, 3, 0x80, 0x81})


class EnvelopeStream:
    """Reads a stream of envelopes. `read` raises UpstreamError for anything else, and when it breaks."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._decoder = EnvelopeDecoder()
        self._begun = False

    @property
    def cut(self) -> bool:
        """Whether the stream ended inside an envelope."""
        return self._decoder.pending

    async def read(self, limit_s: float | None = None) -> list[Envelope] | None:
        """The envelopes that the next piece completes; None at the end, or when nothing comes for `limit_s` seconds."""
        found = await self._fed(b"")  # the rest after the last ones; if it is no envelope, nothing may follow it
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
        """The envelopes before one that takes long to unpack; or those from that one on."""
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
    """The error of an invalid stream."""
    return PROFILE.error(f"unreadable answer: {error}", kind="bad_answer", repeatable=False, code=PROTOCOL_ERROR)


#: Bytes of messages that wait to be sent. While there are more, nothing that asks for answers is read.
MAX_WAITING_BYTES = 8 * 1024 * 1024


class Appends:
    """The messages of one run.

    send    sends one: `(number, message)`. Raises ProxyError
    failed  receives the error of a message that could not be sent; none is sent after it
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
        """The number of sent messages."""
        return self._next

    def put(self, message: bytes | dict[str, Any]) -> None:
        """Queues a message; after `stop` it is dropped."""
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
        """Queues a sign of life, unless a waiting message is one as well."""
        if not self._waiting:
            self.put(message)

    async def room(self) -> None:
        """Waits until more messages may wait."""
        await self._room.wait()

    async def settled(self) -> None:
        """Waits until everything was sent, or cannot be."""
        while self._task is not None and not self._closed:
            await asyncio.wait({self._task})

    def stop(self) -> None:
        """Sends nothing more; a message on its way is not called back."""
        self._closed = True
        self._waiting.clear()
        self._room.set()

    async def close(self) -> None:
        """Ends the sending task at once."""
        self.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        """Sends what waits, then ends: a silent run needs no task."""
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
