"""An answer that is passed on as it is, where another model may serve: what a refusal means, and a stream whose head
waits until it says something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from proxy.core.sse import FrameTooLarge, SSEDecoder, load_json
from proxy.core.upstream_failures import kind_of_status
from proxy.errors import UpstreamError
from proxy.providers.contract import NativeAnswer
from proxy.server.exchange import Exchange
from proxy.server.fallback.chain import Chain

#: Events that show a reader nothing. Behind one that tells of a failure it is known what that is.
_UNSEEN = frozenset({"response.created", "response.in_progress", "response.queued", "keepalive", "codex.rate_limits"})
_FAILURES = frozenset({"response.failed", "response.error", "error"})


def check_native(exchange: Exchange, answer: NativeAnswer, label: str) -> None:
    """Raises what a refusal means that would be passed on as it is: where another model may serve, and where it is not
    the one that was asked for who refuses."""
    chain = exchange.fallback
    if answer.status < 400:
        return
    error = answer.end.failure
    if error is None:
        message, kind = f"{label} answered with status {answer.status}", kind_of_status(answer.status)
        error = UpstreamError(message, kind=kind, status=answer.status, provider=label)
    if chain.failures or (chain.left and error.kind in chain.kinds):
        raise error


async def kept_back(chain: Chain, answer: NativeAnswer) -> AsyncGenerator[bytes, None]:
    """The body of a stream. Its first piece comes with what a reader sees first, or when nothing is held any longer
    (then it may be empty). Raises UpstreamError, also for a failure before that, told in the stream, that leads to
    another model."""
    loop, held, decoder = asyncio.get_running_loop(), bytearray(), SSEDecoder()
    until = chain.held_until(loop.time(), 0.0)
    task: asyncio.Future[bytes] | None = None
    try:
        while True:
            task = asyncio.ensure_future(_next(answer))
            await asyncio.wait({task}, timeout=max(0.0, until - loop.time()))
            if not task.done():
                break
            chunk = task.result()
            failure = answer.end.failure
            if failure is not None and failure.kind in chain.kinds:
                raise failure
            held += chunk
            if not chunk or failure is not None or _shows(decoder, chunk):
                task = None
                break
        yield bytes(held)
        if task is not None and (chunk := await task):
            yield chunk
        while chunk := await _next(answer):
            yield chunk
    finally:
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})


async def _next(answer: NativeAnswer) -> bytes:
    """b"" behind the last piece."""
    return await anext(answer.chunks, b"")


def _shows(decoder: SSEDecoder, chunk: bytes) -> bool:
    """Whether a reader sees something of what is whole by now. What cannot be read is nothing to wait behind."""
    try:
        kinds = [_kind(name, data) for name, data in decoder.feed(chunk)]
    except FrameTooLarge:
        return True
    return any(kind not in _UNSEEN and kind not in _FAILURES for kind in kinds)


def _kind(name: bytes, data: bytes) -> str:
    if name:
        return name.decode(errors="replace")
    try:
        event: Any = load_json(data.decode())
    except (ValueError, RecursionError):
        return ""
    return str(event.get("type")) if isinstance(event, dict) else ""
