"""An answer that is passed on as it is: of a provider that speaks the Responses API itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from aiohttp import web

from proxy.core.responses_events import visible_after
from proxy.core.sse import FrameTooLarge, SSEDecoder
from proxy.core.upstream_failures import kind_of_status
from proxy.core.visible import Visible
from proxy.errors import ProxyError, UpstreamError
from proxy.observe.lifecycle import GenerationStarted, Progress
from proxy.providers.contract import Call, NativeAnswer, NativeResponses
from proxy.server.request.candidates import Candidates
from proxy.server.request.ledger import Ledger
from proxy.server.serving.stream import reading_client, watched


class RelayedAnswer:
    """Sent byte by byte; once its head is out nothing is made up, so a body that breaks has no end."""

    def __init__(self, ledger: Ledger, call: Call) -> None:
        self.call = call
        self._ledger = ledger

    @property
    def visible(self) -> Visible:
        return Visible.NOTHING if self._ledger.response is None else Visible.CONTENT

    async def of(self, candidates: Candidates) -> web.StreamResponse:
        ledger, call = self._ledger, self.call
        provider = cast(NativeResponses, candidates.current.provider)  # as all accounts of a provider are
        async with watched(ledger), provider.native(call) as answer:
            check(answer, candidates)
            streams = answer.status == 200 and call.request.get("stream") is True
            waits = streams and candidates.others
            async with aclosing(kept_back(candidates, answer) if waits else answer.chunks) as chunks:
                first = await anext(chunks, b"") if waits else b""
                response = web.StreamResponse(status=answer.status, headers={**ledger.head, **answer.headers})
                ledger.response = response
                await response.prepare(ledger.inquiry.request)
                ledger.note("info", "response_started", status=answer.status)
                await self._relay(answer, response, _after(first, chunks), streams=streams)
            self._note_end(answer)
            async with reading_client(ledger):
                await response.write_eof()
        return response

    async def _relay(
        self,
        answer: NativeAnswer,
        response: web.StreamResponse,
        chunks: AsyncGenerator[bytes, None],
        *,
        streams: bool,
    ) -> None:
        """Passes the body on. One that is no stream comes in one piece."""
        ledger, begun = self._ledger, False
        keep = ledger.capture.streamed if streams else ledger.capture.replied
        async for chunk in chunks:
            if not begun and answer.status == 200:
                begun = True
                ledger.tell(GenerationStarted())
            async with reading_client(ledger):
                await response.write(chunk)
            keep(chunk)
            ledger.tell(Progress(len(chunk), 1))

    def _note_end(self, answer: NativeAnswer) -> None:
        if answer.end.usage is not None:
            self._ledger.used({"type": "message_delta", "usage": answer.end.usage})
        if answer.status >= 400:
            message = f"the upstream answered with status {answer.status}"
            self._ledger.failed(UpstreamError(message, kind="upstream", status=answer.status))
        elif answer.end.failure is not None:
            self._ledger.failed(answer.end.failure, in_band=True)
        else:
            self._ledger.completed(answer.status)

    async def fail(self, error: ProxyError) -> web.StreamResponse:
        raise error


def check(answer: NativeAnswer, candidates: Candidates) -> None:
    """Raises what a refusal means that would be passed on as it is: where another candidate goes on after it, and where
    it is not the model that was asked for who refuses."""
    if answer.status < 400:
        return
    error, candidate = answer.end.failure, candidates.current
    if error is None:
        message, kind = f"{candidate.label} answered with status {answer.status}", kind_of_status(answer.status)
        error = UpstreamError(message, kind=kind, status=answer.status, provider=candidate.label)
    refused = answer.status == 429 and candidates.account_follows(error, Visible.NOTHING)
    if refused or candidates.failures or candidates.model_follows(error, Visible.NOTHING):
        raise error


async def kept_back(candidates: Candidates, answer: NativeAnswer) -> AsyncGenerator[bytes, None]:
    """The body of a stream. Its first piece comes with what a reader sees first, or when nothing is held any longer
    (then it may be empty). Raises UpstreamError, also for a failure before that, told in the stream, that leads to
    another model."""
    loop, held, decoder = asyncio.get_running_loop(), bytearray(), SSEDecoder()
    until = candidates.held_until(loop.time(), 0.0)
    task: asyncio.Future[bytes] | None = None
    try:
        while True:
            task = asyncio.ensure_future(_next(answer))
            await asyncio.wait({task}, timeout=max(0.0, until - loop.time()))
            if not task.done():
                break
            chunk = task.result()
            failure = answer.end.failure
            if failure is not None and candidates.model_follows(failure, Visible.NOTHING):
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
    """b"" after the last piece."""
    return await anext(answer.chunks, b"")


async def _after(first: bytes, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    if first:
        yield first
    async for chunk in chunks:
        yield chunk


def _shows(decoder: SSEDecoder, chunk: bytes) -> bool:
    """Whether a reader sees something of what is whole by now. What cannot be read is nothing to wait behind."""
    try:
        return any(visible_after(name, data) > Visible.FRAMING for name, data in decoder.feed(chunk))
    except FrameTooLarge:
        return True
