"""The one writer of event streams, and the watch over clients that leave.

Batches are written as they come, each in one write. Two things happen between them, in the only other task of a
request: a client that left ends the work within a second, and a long silence is filled, so that nobody in between
gives up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from aiohttp import web

from proxy.core.messages import PING, Event
from proxy.errors import CallCutError, ProxyError
from proxy.observe.lifecycle import GenerationStarted, Progress, UsageUpdated
from proxy.server.exchange import Exchange, as_proxy_error, unforeseen
from proxy.server.renderers import Form

#: How often the watch looks.
TICK_S = 0.5
#: Silence after which something is sent. Boxes on the way cut idle connections after a minute.
KEEPALIVE_S = 15.0
#: A reader that takes nothing for this long is gone, whatever its connection says.
STALL_S = 300.0

HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}


class EventWriter:
    """Writes one stream. `begun` tells whether the status line is out, after which errors are events; `complete`,
    whether the answer is out whole."""

    def __init__(self, exchange: Exchange, form: Form, grace_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._exchange = exchange
        self._request = exchange.request
        self._form = form
        self._grace_s = grace_s
        self._now = loop.time
        self._lock = asyncio.Lock()
        self._held: list[Event] = []
        self._observer = Observer(exchange)
        self._arrived = self._written = loop.time()
        self._writing_since = loop.time()
        self._over = False
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
        await self._write_data(self._form.failure(error), 1)

    async def end(self) -> web.StreamResponse:
        """The end of the body, after the last event."""
        response = self._exchange.response
        if response is None:
            raise ProxyError("the provider sent nothing", kind="bad_answer")
        async with self._lock:
            self._writing_since = self._now()
            await response.write_eof()
        return response

    async def tick(self) -> None:
        """Fills a silence; called by the watch. Never behind the last event, nor while something is written."""
        now = self._now()
        if self._lock.locked():
            if now - self._writing_since > STALL_S:
                raise ConnectionResetError("the client stopped reading")
        elif self._over:
            return
        elif not self.begun:
            if self._held and now - self._arrived >= self._grace_s:
                events, self._held = self._held, []
                await self._write([*events, PING])
        elif now - self._written >= KEEPALIVE_S:
            await self._write_data(self._form.sign_of_life(now), 1)

    async def _write(self, events: list[Event]) -> None:
        data = self._form.encode(events, self._now())
        over = events[-1]["type"] == "message_stop"
        self._over = self._over or over
        self._observer.see(events)
        if data:
            await self._write_data(data, len(events))
        if over and self.begun:
            self.complete = True
            self._exchange.completed(200)

    async def _write_data(self, data: bytes, events: int) -> None:
        async with self._lock:
            self._writing_since = self._now()
            response = self._exchange.response
            if response is None:
                response = self._exchange.response = web.StreamResponse(headers=HEADERS | self._exchange.id_headers)
                await response.prepare(self._request)
                self._exchange.log("info", "response_started", status=200)
            await response.write(data)
            self._written = self._now()
        self._exchange.record(Progress(len(data), events))


class Observer:
    """Tells the watchers of an exchange what they need to know of its answer."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._generating = False

    def see(self, events: list[Event]) -> None:
        for event in events:
            kind = event["type"]
            if kind == "content_block_start" and not self._generating:
                self._generating = True
                self._exchange.record(GenerationStarted())
            elif kind in ("message_start", "message_delta"):
                record_usage(self._exchange, event)


def record_usage(exchange: Exchange, event: Event) -> None:
    """Reports the token counts of a `message_start` or `message_delta`."""
    usage = event.get("usage") or event.get("message", {}).get("usage") or {}
    counted = [usage.get(f"{kind}input_tokens") for kind in ("", "cache_read_", "cache_creation_")]
    known = [value for value in counted if isinstance(value, int)]
    output = usage.get("output_tokens")
    if event["type"] == "message_start":
        output = None
    exchange.record(UsageUpdated(sum(known) if known else None, output))


@asynccontextmanager
async def watched(exchange: Exchange, writer: EventWriter | None = None) -> AsyncIterator[None]:
    """While inside, a client that leaves cancels the current task within a second, in whatever runner the application
    is mounted; and `writer` gets its ticks."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("not in a task")
    watch = asyncio.create_task(_watch(exchange, task, writer))
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.wait({watch})  # awaiting it would swallow a cancellation of our own
        if not watch.cancelled():
            watch.exception()


async def _watch(exchange: Exchange, work: asyncio.Task[Any], writer: EventWriter | None) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        if exchange.left:
            break
        if writer is not None:
            try:
                async with asyncio.timeout(STALL_S):
                    await writer.tick()
            except (OSError, RuntimeError):  # the connection broke, or took nothing, while we wrote
                break
    if not work.cancelling():  # the runner may have been quicker; twice would cut the clean-up short
        work.cancel()


async def send_stream(
    exchange: Exchange, batches: AsyncGenerator[list[Event], None], form: Form, grace_s: float
) -> web.StreamResponse:
    """Streams an answer. Raises ProxyError as long as nothing was written; afterwards errors are events."""
    writer = EventWriter(exchange, form, grace_s)
    if form.has_incomplete:
        batches = _with_cut_calls(batches)
    async with watched(exchange, writer), aclosing(batches):
        try:
            async for batch in batches:
                await writer.send(batch)
            if not writer.complete:
                raise ProxyError("the provider ended its answer without an end", kind="bad_answer")
        except Exception as error:
            if isinstance(error, ConnectionError) and exchange.left:
                raise
            known = as_proxy_error(error) or unforeseen(exchange.state, exchange.id, error)
            if not writer.begun:
                raise known from None
            if not writer.complete:
                await writer.fail(known)
                exchange.failed(known, in_band=True)
        return await writer.end()


async def fold_stream(exchange: Exchange, batches: AsyncGenerator[list[Event], None], form: Form) -> dict[str, Any]:
    """The same answer as one object. Raises ProxyError."""
    observer = Observer(exchange)
    batches = _with_cut_calls(batches)
    async with watched(exchange), aclosing(batches):
        async for batch in batches:
            try:
                form.fold(batch)
            except OverflowError as error:
                raise ProxyError(str(error), kind="bad_answer") from None
            observer.see(batch)
    reply = form.reply()
    if reply is None:
        raise ProxyError("the provider ended its answer without an end", kind="bad_answer")
    return reply


async def _with_cut_calls(batches: AsyncGenerator[list[Event], None]) -> AsyncGenerator[list[Event], None]:
    """An answer that may end inside a tool call when the token limit cut it: the block stays open."""
    async with aclosing(batches):
        try:
            async for batch in batches:
                yield batch
        except CallCutError as error:
            end = {"stop_reason": "max_tokens", "stop_sequence": None}
            yield [{"type": "message_delta", "delta": end, "usage": error.usage}, {"type": "message_stop"}]
