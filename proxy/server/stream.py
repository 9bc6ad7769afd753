"""The one writer of event streams, and the watch over clients that leave.

Batches are written as they come, each in one write. Two things happen between them, by a timer: a client that left ends
the work within a second, and a long silence is filled, so that nobody in between gives up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Any

from aiohttp import web

from proxy.core.messages import PING, Event
from proxy.core.token_usage import told_count
from proxy.errors import ProxyError
from proxy.observe.lifecycle import GenerationStarted, InputEstimated, Progress, UsageUpdated
from proxy.server.allowances import explained
from proxy.server.exchange import Exchange, as_proxy_error, is_loss, unforeseen
from proxy.server.renderers import Renderer

HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


class EventStream(web.StreamResponse):
    """A stream whose head goes out with its first data: each write of a socket takes as long as ten events."""

    _send_headers_immediately = False  # of aiohttp, which has no public name for it


class EventWriter:
    """Writes one stream. `begun` tells whether the status line is out, after which errors are events; `complete`,
    whether the answer is out whole."""

    def __init__(self, exchange: Exchange, renderer: Renderer) -> None:
        loop = asyncio.get_running_loop()
        self._exchange = exchange
        self._renderer = renderer
        self._timers = exchange.state.timers
        self._now = loop.time
        self._lock = asyncio.Lock()
        self._held: list[Event] = []
        self._observer = AnswerObserver(exchange)
        self._written = loop.time()
        self._held_until = exchange.fallback.held_until(loop.time(), exchange.state.config().stream_grace_ms / 1000)
        self._writing_since = loop.time()
        self._over = self._ended = False
        self.complete = False

    @property
    def begun(self) -> bool:
        return self._exchange.response is not None

    async def send(self, events: list[Event]) -> None:
        """Passes a batch on. Framing without content is kept until content comes or the grace is over, so that a
        failure before it keeps its status."""
        if not self.begun:
            events = self._held + [event for event in events if event["type"] != "ping"]  # of no use before the content
            if all(event["type"] == "message_start" for event in events):
                self._held = events
                return
            self._held = []
        await self._write(events)

    async def fail(self, error: ProxyError) -> None:
        """The error as the last event."""
        self._over = True
        await self._write_data(self._renderer.failure(error), 1, last=True)

    async def end(self) -> web.StreamResponse:
        """The end of the body, unless it went out with the last event."""
        response = self._exchange.response
        if response is None:
            raise ProxyError("the provider sent nothing", kind="bad_answer")
        if not self._ended:
            await self._write_data(b"", 0, last=True)
        return response

    @property
    def stalled(self) -> bool:
        """Whether the client has taken nothing of what is being written for too long."""
        return self._lock.locked() and self._now() - self._writing_since > self._timers.stall

    @property
    def silent(self) -> bool:
        """Whether nothing was sent for so long that `fill` is to be called. Never after the last event, nor while
        something is written."""
        if self._lock.locked() or self._over:
            return False
        if self.begun:
            return self._now() - self._written >= self._timers.keepalive
        return bool(self._held) and self._now() >= self._held_until

    async def fill(self) -> None:
        """Sends what was held back, or a sign of life; nothing when the provider was quicker."""
        if not self.silent:
            return
        if self.begun:
            await self._write_data(self._renderer.keepalive(self._now()), 1)
        else:
            events, self._held = self._held, []
            await self._write([*events, PING])

    async def _write(self, events: list[Event]) -> None:
        data = self._renderer.encode(events, self._now())
        over = events[-1]["type"] == "message_stop"
        self._over = self._over or over
        self._observer.see(events)
        if data:
            await self._write_data(data, len(events), last=over)
        if over and self.begun:
            self.complete = True
            self._exchange.completed(200)

    async def _write_data(self, data: bytes, events: int, *, last: bool = False) -> None:
        """In one piece with the head before it, and with the end of the body behind the last."""
        async with self._lock:
            self._writing_since = self._now()
            response = self._exchange.response
            if response is None:
                response = self._exchange.response = EventStream(headers=HEADERS | self._exchange.head)
                await response.prepare(self._exchange.request)
                self._exchange.log("info", "response_started", status=200)
            self._ended = last
            await (response.write_eof(data) if last else response.write(data))
            self._exchange.capture.streamed(data)
            self._written = self._now()
        if data:
            self._exchange.record(Progress(len(data), events))


class AnswerObserver:
    """Tells the watchers of an exchange what they need to know of its answer."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._generating = False

    def see(self, events: list[Event]) -> None:
        for event in events:
            kind = event["type"]
            if kind == "content_block_start" and not self._generating:
                self._generating = True
                note_answer(self._exchange)
            elif kind in ("message_start", "message_delta"):
                record_usage(self._exchange, event)


def note_answer(exchange: Exchange) -> None:
    """The first output of the model arrived."""
    exchange.timings.generating()
    exchange.record(GenerationStarted())
    if exchange.cache is not None:
        exchange.cache.answer_began()


def record_usage(exchange: Exchange, event: Event) -> None:
    """Reports the token counts of a `message_start` or `message_delta`."""
    usage = event.get("usage") or event.get("message", {}).get("usage") or {}
    counted = [told_count(usage.get(f"{kind}input_tokens")) for kind in ("", "cache_read_", "cache_creation_")]
    known = [value for value in counted if value is not None]
    total = sum(known) if known else None
    if event["type"] == "message_start":
        exchange.record(InputEstimated(total or 0))
        return
    cached = counted[1] if exchange.cache is None else exchange.cache.used(total, counted[1])
    exchange.record(UsageUpdated(total, told_count(usage.get("output_tokens")), cached))


def watched(exchange: Exchange, writer: EventWriter | None = None) -> AbstractAsyncContextManager[None]:
    """While inside, a client that leaves cancels the current task within a second, in whatever runner the application
    is mounted; and `writer` fills silences. Raises what failed there as a ProxyError. Work that goes on although the
    answer is out whole is ended, and that is no error: the connection may have the client's next request already."""
    return _Watch(exchange, writer)


class _Watch:
    """Cancels the work once the client is gone, or takes nothing any more, or has the whole answer for a while. What
    failed while a silence was filled cancels it too, and is left in `_error`: the cancellation is turned into it.
    `_enough` says that it was cancelled for nothing else than the whole answer.

    A timer, and a task only to fill a silence: most answers end before it is wound up again. A class, since the frame
    of a generator would hold the cancellation, and that the frame, until the garbage is collected."""

    def __init__(self, exchange: Exchange, writer: EventWriter | None) -> None:
        self._exchange = exchange
        self._writer = writer
        self._timers = exchange.state.timers
        self._filling: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._complete = False  # at the last look
        self._error: ProxyError | None = None
        self._enough = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("not in a task")
        self._work = task
        self._timer = self._loop.call_later(self._timers.tick, self._look)

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        del _error, _trace
        try:
            return kind is not None and issubclass(kind, asyncio.CancelledError) and self._is_over()
        finally:
            await self.close()

    def _is_over(self) -> bool:
        """Whether the cancellation was for the whole answer, and goes no further. Raises the ProxyError that it stands
        for."""
        known = self._error
        if not (known or self._enough):
            known = self._exchange.state.running.stopped()
            if known is None:  # the client left
                return False
        elif self._work.uncancel():  # somebody else wants the end as well
            return False
        if known is not None:
            raise known from None
        return True

    async def close(self) -> None:
        self._timer.cancel()
        if self._filling is not None and not self._filling.done():
            self._filling.cancel()
            await asyncio.wait({self._filling})  # awaiting it would swallow a cancellation of our own

    def _look(self) -> None:
        writer = self._writer
        if self._exchange.left or (writer is not None and writer.stalled):
            self._cancel()
        elif self._complete:
            self._enough = self._cancel()
        elif writer is not None and writer.silent:
            self._filling = self._loop.create_task(self._fill(writer))
        else:
            self._complete = writer is not None and writer.complete
            self._timer = self._loop.call_later(self._timers.tick, self._look)

    async def _fill(self, writer: EventWriter) -> None:
        try:
            async with asyncio.timeout(self._timers.stall) as limit:
                await writer.fill()
        except Exception as error:
            lost = limit.expired() or is_loss(error, self._exchange.request)
            if lost:
                self._cancel()
                return
            known = as_proxy_error(error) or unforeseen(self._exchange.state, self._exchange.id, error)
            if self._cancel():
                self._error = known
        else:
            self._timer = self._loop.call_later(self._timers.tick, self._look)

    def _cancel(self) -> bool:
        """Not twice, since that would cut the clean-up short: the runner may have been quicker. Whether it was us."""
        return not self._work.cancelling() and self._work.cancel()


async def send_stream(
    exchange: Exchange, batches: AsyncGenerator[list[Event], None], renderer: Renderer
) -> web.StreamResponse:
    """Streams an answer. Raises ProxyError as long as nothing was written; afterwards errors are events."""
    writer = EventWriter(exchange, renderer)
    try:
        async with watched(exchange, writer), aclosing(batches):
            async for batch in batches:
                await writer.send(batch)
            if not writer.complete:
                raise ProxyError("the provider ended its answer without an end", kind="bad_answer")
            await writer.end()
        return await writer.end()  # which went out before, whoever ended the work
    except Exception as error:
        if is_loss(error, exchange.request):
            raise
        known = as_proxy_error(error) or unforeseen(exchange.state, exchange.id, error)
        if not writer.begun:
            raise known from None
        known = explained(exchange.state, known, exchange.account, exchange.model)
    async with watched(exchange, writer):
        if not writer.complete:
            await writer.fail(known)
            exchange.failed(known, in_band=True)
        return await writer.end()


async def fold_stream(
    exchange: Exchange, batches: AsyncGenerator[list[Event], None], renderer: Renderer
) -> dict[str, Any]:
    """The same answer as one object. Raises ProxyError."""
    observer = AnswerObserver(exchange)
    async with watched(exchange), aclosing(batches):
        async for batch in batches:
            try:
                renderer.fold(batch)
            except OverflowError as error:
                raise ProxyError(str(error), kind="bad_answer") from None
            observer.see(batch)
    reply = renderer.reply()
    if reply is None:
        raise ProxyError("the provider ended its answer without an end", kind="bad_answer")
    return reply
