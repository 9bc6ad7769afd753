"""Reads a request body: counts, times and unpacks it, and counts it against the shared memory."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import HttpVersion11, web

from proxy.config import Config
from proxy.errors import ProxyError
from proxy.server.request.admission import AdmissionTicket

PACKED = frozenset({"gzip", "deflate"})
ENCODINGS = PACKED | {"", "identity"}
#: Bytes of a piece of an unpacked body.
MAX_PIECE = 256 * 1024


async def read_body(request: web.BaseRequest, config: Config, ticket: AdmissionTicket, *, packed: bool) -> bytearray:
    """The decoded body, at most `max_body_bytes`. Raises ProxyError: 413, 415, 408, 429."""
    body = bytearray()  # grows as it comes: joining 60 MB at the end would block the loop for 60 ms
    limit = config.max_body_bytes

    def too_large() -> ProxyError:
        message = f"the request body is larger than {limit} bytes; start a new conversation or drop large attachments"
        return ProxyError(message, kind="too_large")

    def take(piece: bytes) -> None:
        size = len(body) + len(piece)
        if size > limit:
            raise too_large()
        ticket.hold(size)
        body.extend(piece)

    await receive(request, config, take, limit=limit, too_large=too_large, packed=packed)
    return body


async def receive(
    request: web.BaseRequest,
    config: Config,
    take: Callable[[bytes], None],
    *,
    limit: int,
    too_large: Callable[[], Exception],
    packed: bool,
) -> None:
    """Passes the decoded body to `take`, piece by piece, which must count. Raises what that raises, and ProxyError:
    415, 408.

    limit      most bytes of the body
    too_large  makes the error for a body that is longer, which is raised at once if its head says so
    packed     whether bodies are unpacked here; otherwise aiohttp has done it
    """
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        raise ProxyError("this Content-Encoding is not supported; send gzip, deflate or none", kind="media_type")
    if (request.content_length or 0) > limit:
        raise too_large()
    _invite(request)
    content = request.content
    if content.is_eof() and content.exception() is None and encoding not in PACKED:
        while piece := content.read_nowait():  # a small body comes with its head, and needs neither timers nor readers
            take(piece)
        return
    try:
        async with asyncio.timeout(config.body_total_timeout_ms / 1000):
            chunks = _chunks(request, config.body_idle_timeout_ms / 1000, limit)
            async for piece in _pieces(chunks, encoding if packed else ""):
                take(piece)
    except TimeoutError:
        raise ProxyError("the request body took too long to arrive", kind="slow_request") from None
    except _TooMuch:
        raise too_large() from None
    except _Unreadable:
        raise ProxyError("the request body could not be read", kind="invalid_request") from None


async def answer_expectation_later(_request: web.Request) -> None:
    """The `expect_handler` of our routes, which does nothing: `100 Continue` is sent once the body is wanted, so that a
    client need not send one that is refused."""


def _invite(request: web.BaseRequest) -> None:
    expects = request.headers.get("Expect", "").strip().lower() == "100-continue"
    if expects and request.version >= HttpVersion11 and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


class _TooMuch(Exception):
    """The body has more bytes than allowed, packed or not."""


class _Unreadable(Exception):
    """The body is not what its headers say."""


async def _pieces(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yields the body without the encoding, "" for none or one that was removed before. Raises _Unreadable."""
    try:
        async for piece in _unpacked(chunks, encoding) if encoding in PACKED else chunks:
            yield piece
    except (web.HTTPException, web.RequestPayloadError, ValueError, zlib.error, EOFError):
        raise _Unreadable from None


async def _chunks(request: web.BaseRequest, idle_s: float, limit: int) -> AsyncIterator[bytes]:
    """Yields what arrives, and counts it: a packed body can go on for ever and unpack to nothing. Raises _TooMuch."""
    content, size = request.content, 0
    while True:
        chunk = content.read_nowait()  # usually all has arrived, and needs no timer
        if not chunk:
            if content.at_eof():
                return
            async with asyncio.timeout(idle_s):
                chunk = await content.readany()
        if chunk:
            size += len(chunk)
            if size > limit:
                raise _TooMuch
            yield chunk


async def _unpacked(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yields the unpacked body in pieces that do not block the loop: a small body may unpack to gigabytes."""
    unpacker: Any = None
    async for chunk in chunks:
        if unpacker is None:
            raw_deflate = encoding == "deflate" and chunk[0] & 0x0F != 8
            unpacker = zlib.decompressobj(31 if encoding == "gzip" else -15 if raw_deflate else 15)
        while chunk:
            yield unpacker.decompress(chunk, MAX_PIECE)
            if unpacker.unused_data:  # it would be kept, and not counted
                raise ValueError("the packed body continues after its end")
            chunk = unpacker.unconsumed_tail
            await asyncio.sleep(0)
    if unpacker is not None and not unpacker.eof:
        raise EOFError("the packed body is not complete")
