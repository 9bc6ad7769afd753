"""Reading a request body: counted, timed, unpacked, and paid for out of the shared budget."""

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
#: A packed body is unpacked in pieces of this size.
MAX_PIECE = 256 * 1024


async def read_body(request: web.BaseRequest, config: Config, ticket: AdmissionTicket, *, packed: bool) -> bytearray:
    """The decoded body, at most `max_body_bytes`. Raises ProxyError: 413, 415, 408, 429."""
    body = bytearray()  # grows as it comes: joining 60 MB at the end would hold the loop for as many milliseconds
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
    """Hands the decoded body to `take`, piece by piece, which has to count. Raises what it raises, and ProxyError: 415,
    408.

    limit      bytes that the body may have
    too_large  makes what is raised at once where the head says that it has more
    packed     whether the runner leaves it to us to unpack bodies; otherwise aiohttp has done it
    """
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        raise ProxyError("this Content-Encoding is not supported; send gzip, deflate or none", kind="media_type")
    if (request.content_length or 0) > limit:
        raise too_large()
    _invite(request)
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
    """The `expect_handler` of our routes: a client that waits for `100 Continue` is told to go on once its body is
    wanted, so that it need not send one that is refused."""


def _invite(request: web.BaseRequest) -> None:
    expects = request.headers.get("Expect", "").strip().lower() == "100-continue"
    if expects and request.version >= HttpVersion11 and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


class _TooMuch(Exception):
    """More bytes arrive than the body may have, packed or not."""


class _Unreadable(Exception):
    """The body is not what its headers say."""


async def _pieces(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The body without the encoding, b"" for none or one that was taken off before. Raises _Unreadable."""
    try:
        async for piece in _unpacked(chunks, encoding) if encoding in PACKED else chunks:
            yield piece
    except (web.HTTPException, web.RequestPayloadError, ValueError, zlib.error, EOFError):
        raise _Unreadable from None


async def _chunks(request: web.BaseRequest, idle_s: float, limit: int) -> AsyncIterator[bytes]:
    """What arrives, which counts as well: a packed body can go on for ever and unpack to nothing."""
    content, size = request.content, 0
    while True:
        chunk = content.read_nowait()  # mostly it is all there, and needs no timer
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
    """The body without its encoding, in pieces that do not hold the loop: a small body may unpack to gigabytes."""
    unpacker: Any = None
    async for chunk in chunks:
        if unpacker is None:
            raw_deflate = encoding == "deflate" and chunk[0] & 0x0F != 8
            unpacker = zlib.decompressobj(31 if encoding == "gzip" else -15 if raw_deflate else 15)
        while chunk:
            yield unpacker.decompress(chunk, MAX_PIECE)
            if unpacker.unused_data:  # it would be kept, and not counted
                raise ValueError("the packed body goes on behind its end")
            chunk = unpacker.unconsumed_tail
            await asyncio.sleep(0)
    if unpacker is not None and not unpacker.eof:
        raise EOFError("the packed body is not complete")
