"""Reading a request body: counted, timed, and paid for out of the shared budget."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

from aiohttp import web

from proxy.config import Config
from proxy.core.messages import decode_body
from proxy.errors import ProxyError
from proxy.server.admission import Permit
from proxy.server.guard import check_json

#: What aiohttp unpacks by itself.
ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})


async def read_json(request: web.BaseRequest, config: Config, permit: Permit) -> dict[str, Any]:
    """The JSON object of a request. Raises ProxyError and InvalidRequest."""
    check_json(request)
    return decode_body(await read_body(request, config, permit))


async def read_body(request: web.BaseRequest, config: Config, permit: Permit) -> bytes:
    """The decoded body, at most `max_body_bytes`. Raises ProxyError: 413, 415, 408, 429."""
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        raise ProxyError("this Content-Encoding is not supported; send gzip, deflate or none", kind="media_type")
    limit = config.max_body_bytes
    if (request.content_length or 0) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(config.body_total_timeout_ms / 1000):
            return await _read(request, config, permit)
    except TimeoutError:
        raise ProxyError("the request body took too long to arrive", kind="slow_request") from None
    except (web.HTTPException, web.RequestPayloadError, ValueError, zlib.error, EOFError):
        raise ProxyError("the request body could not be read", kind="invalid_request") from None


async def _read(request: web.BaseRequest, config: Config, permit: Permit) -> bytes:
    chunks: list[bytes] = []
    size, limit = 0, config.max_body_bytes
    while True:
        async with asyncio.timeout(config.body_idle_timeout_ms / 1000):
            chunk = await request.content.readany()
        if not chunk:
            return b"".join(chunks)
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        permit.take_bytes(len(chunk))
        chunks.append(chunk)


def _too_large(limit: int) -> ProxyError:
    message = f"the request body is larger than {limit} bytes; start a new conversation or drop large attachments"
    return ProxyError(message, kind="too_large")
