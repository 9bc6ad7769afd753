"""Reading a request body: counted, timed, and paid for out of the shared budget."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from proxy.config import Config
from proxy.errors import ProxyError
from proxy.server.admission import AdmissionTicket

PACKED = frozenset({"gzip", "deflate"})
ENCODINGS = PACKED | {"", "identity"}
#: A packed body is unpacked in pieces of this size.
MAX_PIECE = 256 * 1024


async def read_body(request: web.BaseRequest, config: Config, ticket: AdmissionTicket, *, packed: bool) -> bytes:
    """The decoded body, at most `max_body_bytes`. Raises ProxyError: 413, 415, 408, 429.

    packed  whether the runner leaves it to us to unpack bodies; otherwise aiohttp has done it
    """
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        raise ProxyError("this Content-Encoding is not supported; send gzip, deflate or none", kind="media_type")
    limit = config.max_body_bytes
    if (request.content_length or 0) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(config.body_total_timeout_ms / 1000):
            return await _read(request, config, ticket, encoding if packed else "")
    except TimeoutError:
        raise ProxyError("the request body took too long to arrive", kind="slow_request") from None
    except (web.HTTPException, web.RequestPayloadError, ValueError, zlib.error, EOFError):
        raise ProxyError("the request body could not be read", kind="invalid_request") from None


async def _read(request: web.BaseRequest, config: Config, ticket: AdmissionTicket, encoding: str) -> bytes:
    pieces: list[bytes] = []
    size, limit = 0, config.max_body_bytes
    chunks = _chunks(request, config.body_idle_timeout_ms / 1000)
    async for piece in _unpacked(chunks, encoding) if encoding in PACKED else chunks:
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        ticket.take_bytes(len(piece))
        pieces.append(piece)
    return b"".join(pieces)


async def _chunks(request: web.BaseRequest, idle_s: float) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(idle_s):
            chunk = await request.content.readany()
        if not chunk:
            return
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
            chunk = unpacker.unconsumed_tail
            await asyncio.sleep(0)
    if unpacker is not None and not unpacker.eof:
        raise EOFError("the packed body is not complete")


def _too_large(limit: int) -> ProxyError:
    message = f"the request body is larger than {limit} bytes; start a new conversation or drop large attachments"
    return ProxyError(message, kind="too_large")
