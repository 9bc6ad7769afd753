"""The one writer of event streams. Batches are written as they come, each in one write."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from aiohttp import web

from proxy.core.ingress import Ingress
from proxy.core.messages import PING, Event
from proxy.core.visible import Visible
from proxy.errors import ProxyError
from proxy.observe.lifecycle import Progress
from proxy.providers.contract import Call, Provider
from proxy.providers.upstream.event_reader import Batches, next_batch
from proxy.server.request.candidates import Candidates
from proxy.server.request.ledger import Ledger
from proxy.server.request.renderers import RenderContext, Renderer
from proxy.server.request.replies import json_response
from proxy.server.serving.allowances import explained
from proxy.server.serving.watch import reading_client, watched

#: Asks a provider, and returns the answer that the client gets: in place of the provider's own `stream`.
Asks = Callable[[Provider, Call], Batches]

HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}

#: Most bytes that are written without a wait: a transport that holds nothing takes 64 KiB before it makes aiohttp wait.
AT_ONCE = 48 * 1024


class EventStream(web.StreamResponse):
    """A stream whose head is sent with its first data: each write to a socket takes as long as ten events."""

    _send_headers_immediately = False  # private in aiohttp, without a public name


class AnswerWriter:
    """Writes one answer. A failure before its head is sent keeps its status, so what shows nothing is held until
    content comes, or until `_held_until`.

    begun     whether the status line was sent: then errors are events
    complete  whether the whole answer was sent
    """

    def __init__(self, ledger: Ledger) -> None:
        now = asyncio.get_running_loop().time
        self._ledger = ledger
        self._timers = ledger.inquiry.state.timers
        self._now = now
        self._lock = asyncio.Lock()
        self._written = self._writing_since = now()
        self._held_until = float("inf")
        self._ended = False
        self.begun = self.complete = False

    def _head(self) -> web.StreamResponse:
        raise NotImplementedError

    @property
    def stalled(self) -> bool:
        """Whether the client has read nothing of what is being written for too long."""
        return self._lock.locked() and self._now() - self._writing_since > self._timers.stall

    @property
    def silent(self) -> bool:
        """Whether held data has waited long enough, so that `fill` must be called. Never while something is written."""
        return not (self.begun or self._lock.locked()) and self._now() >= self._held_until

    async def fill(self) -> None:
        """Sends what was held; nothing if the provider was faster."""
        raise NotImplementedError

    async def end(self) -> web.StreamResponse:
        """Sends the end of the body, unless it was sent with the last event. Raises ProxyError."""
        response = self._ledger.response
        if response is None:
            raise ProxyError("the provider sent nothing", kind="bad_answer")
        if not self._ended:
            await self._write_data(b"", 0, last=True)
        return response

    async def _write_data(self, data: bytes, events: int, *, last: bool = False) -> None:
        """Writes data, the first together with the head, the last with the end of the body."""
        async with self._lock:
            self._writing_since = self._now()
            response = self._ledger.response
            if response is None:
                response = self._ledger.response = self._head()
                self.begun = True
                await response.prepare(self._ledger.inquiry.request)
                self._ledger.note("info", "response_started", status=response.status)
            self._ended = last
            await (response.write_eof(data) if last else response.write(data))
        self._wrote(data, events)

    def _writes_at_once(self) -> bool:
        """Whether nothing else is being written, and the client has read all that was."""
        transport = self._ledger.inquiry.request.transport
        if transport is None or transport.is_closing() or self._lock.locked():
            return False
        return transport.get_write_buffer_size() == 0

    def _write_now(self, response: web.StreamResponse, data: bytes, events: int) -> None:
        """Writes up to `AT_ONCE` bytes of an answer that has begun, while `_writes_at_once`: aiohttp then gives them to
        the transport, and has nothing to wait for."""
        writing = response.write(data)
        try:
            writing.send(None)
        except StopIteration:
            self._wrote(data, events)
        else:
            writing.close()
            raise RuntimeError(f"a write of {len(data)} bytes waits")

    def _wrote(self, data: bytes, events: int) -> None:
        self._written = self._now()
        if data:
            self._keep(data)
            self._ledger.tell(Progress(len(data), events))

    def _keep(self, data: bytes) -> None:
        """Adds what was written to the capture."""
        self._ledger.capture.streamed(data)


class EventWriter(AnswerWriter):
    """Writes one stream of events.

    visible  what the client has seen, or may have: an API that has no event for the start of a block shows it later
    """

    def __init__(self, ledger: Ledger, renderer: Renderer, candidates: Candidates) -> None:
        super().__init__(ledger)
        self._renderer = renderer
        self._held: list[Event] = []
        self._observer = AnswerObserver(ledger)
        grace_s = ledger.inquiry.state.config().stream_grace_ms / 1000
        waited = 0.0 if ledger.described is None else ledger.described.waited
        self._held_until = candidates.held_until(self._now() - waited, grace_s)
        self._over = False
        self._unwritten = b""  # bytes of a batch that was too long to be taken
        self._said = Visible.NOTHING  # the level of all that was encoded, even if it gave no bytes

    def _head(self) -> web.StreamResponse:
        return EventStream(headers=HEADERS | self._ledger.head)

    @property
    def visible(self) -> Visible:
        if self.begun:
            return max(self._said, Visible.FRAMING)
        return Visible.NOTHING if self._said <= Visible.FRAMING else Visible.BUFFERED

    async def send(self, events: list[Event]) -> None:
        """Passes a batch on. Framing is held until content comes or the grace is over, so that a failure before that
        keeps its status. One answer has one `message_start`, even if another account continues it."""
        if self._said <= Visible.FRAMING:
            events = self._framed(events)
            if not events:
                return
        await self._write(events)

    def _framed(self, events: list[Event]) -> list[Event]:
        """The events of a batch that are sent while only framing was sent before."""
        if self._held or self.begun:
            events = [event for event in events if event["type"] != "message_start"]
        if self.begun:
            return events
        shown = [event for event in events if event["type"] != "ping"]  # useless before the content
        for event in shown:
            if event["type"] != "message_start":
                held, self._held = self._held, []
                return held + shown
        self._held = self._held or shown
        return []

    async def fail(self, error: ProxyError) -> None:
        """Sends the error as the last event."""
        self._over = True
        await self._write_data(self._renderer.failure(error), 1, last=True)

    @property
    def silent(self) -> bool:
        """Whether held data has waited long enough, or nothing was sent for long within the answer."""
        if self.begun:
            return not (self._over or self._lock.locked()) and self._now() - self._written >= self._timers.keepalive
        return bool(self._held) and super().silent

    async def fill(self) -> None:
        """Sends what was held, or a keepalive; nothing if the provider was faster."""
        if not self.silent:
            return
        if self.begun:
            await self._write_data(self._renderer.keepalive(self._now()), 1)
        else:
            events, self._held = self._held, []
            await self._write([*events, PING])

    async def _write(self, events: list[Event]) -> None:
        data, self._unwritten = self._unwritten or self._encoded(events), b""
        over = events[-1]["type"] == "message_stop"
        self._over = self._over or over
        if data:
            await self._write_data(data, len(events), last=over)
        if over and self.begun:
            self.complete = True
            self._ledger.completed(200)

    def _encoded(self, events: list[Event]) -> bytes:
        """The bytes of a batch, which counts as said from now on."""
        data = self._renderer.encode(events, self._now())
        self._observer.see(events)
        if self._said is not Visible.CONTENT:
            self._said = self._said.after(events)
        return data

    def take(self, events: list[Event]) -> bool:
        """Passes on a batch of an answer that flows, at once. False where that takes time: then `send` has to."""
        response = self._ledger.response
        flows = self._said is Visible.CONTENT and events[-1]["type"] != "message_stop"
        if response is None or not (flows and self._writes_at_once()):
            return False
        data = self._encoded(events)
        if len(data) > AT_ONCE:
            self._unwritten = data
            return False
        if data:
            self._write_now(response, data, len(events))
        return True


class AnswerObserver:
    """Reports the beginning and the token counts of an answer to the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._begun = self._generating = False

    def see(self, events: list[Event]) -> None:
        for event in events:
            kind = event["type"]
            if kind == "content_block_start" and not self._generating:
                self._generating = True
                self._ledger.generating()
            elif kind == "message_delta" or (kind == "message_start" and not self._begun):
                self._begun = True
                self._ledger.used(event)


def answer_to(
    ledger: Ledger, call: Call, ingress: Ingress, candidates: Candidates, asks: Asks | None = None
) -> StreamedAnswer | WholeAnswer:
    """The answer to a call in the format of the client API, streamed or whole."""
    inquiry = ledger.inquiry
    state, make = inquiry.state, inquiry.family.renderer
    if make is None:
        raise RuntimeError(f"{inquiry.family.name} renders nothing")
    context = RenderContext(ingress, uuid.uuid4().hex, call.shown, int(state.clock()), state.timers.no_pings)
    if ingress.stream:
        return StreamedAnswer(ledger, call, EventWriter(ledger, make(context), candidates), asks)
    return WholeAnswer(ledger, replace(call, folded=True), lambda: make(context), asks)


def _asked(provider: Provider, call: Call, asks: Asks | None) -> Batches:
    return provider.stream(call) if asks is None else asks(provider, call)


class StreamedAnswer:
    """An answer as events, each batch sent as it comes."""

    def __init__(self, ledger: Ledger, call: Call, writer: EventWriter, asks: Asks | None) -> None:
        self.call = call
        self._ledger = ledger
        self._writer = writer
        self._asks = asks

    @property
    def visible(self) -> Visible:
        return self._writer.visible

    async def of(self, candidates: Candidates) -> web.StreamResponse:
        writer, batches = self._writer, _asked(candidates.current.provider, self.call, self._asks)
        async with watched(self._ledger, writer), aclosing(batches):
            batch = await anext(batches, None)
            while batch is not None:
                await writer.send(batch)
                batch = await next_batch(batches, writer.take)
            if not writer.complete:
                raise ProxyError("the provider ended its answer without an end", kind="bad_answer")
            await writer.end()
        return await writer.end()  # it was sent before, however the work ended

    async def fail(self, error: ProxyError) -> web.StreamResponse:
        """Sends the error as the last event, unless the whole answer was sent."""
        ledger, writer = self._ledger, self._writer
        known = explained(ledger.inquiry.state, error, ledger.account, ledger.model)
        async with watched(ledger, writer):
            if not writer.complete:
                await writer.fail(known)
                ledger.failed(known, in_band=True)
            return await writer.end()


class WholeAnswer:
    """An answer as one object, sent at its end."""

    def __init__(self, ledger: Ledger, call: Call, renderer: Callable[[], Renderer], asks: Asks | None) -> None:
        self.call = call
        self._ledger = ledger
        self._renderer = renderer
        self._asks = asks
        self._observer = AnswerObserver(ledger)
        self._came = Visible.NOTHING

    @property
    def visible(self) -> Visible:
        final = self._ledger.searched or self._ledger.response is not None
        return Visible.CONTENT if final else self._came

    async def of(self, candidates: Candidates) -> web.StreamResponse:
        candidate, renderer = candidates.current, self._renderer()
        async with watched(self._ledger), aclosing(_asked(candidate.provider, self.call, self._asks)) as batches:
            async for batch in batches:
                try:
                    renderer.fold(batch)
                except OverflowError as error:
                    raise ProxyError(str(error), kind="bad_answer") from None
                self._observer.see(batch)
                if self._came is Visible.NOTHING and self._came.after(batch) > Visible.FRAMING:
                    self._came = Visible.BUFFERED
        reply = renderer.reply()
        if reply is None:
            raise ProxyError("the provider ended its answer without an end", kind="bad_answer")
        return await send_json(self._ledger, reply)

    async def fail(self, error: ProxyError) -> web.StreamResponse:
        raise error


async def send_json(ledger: Ledger, body: Mapping[str, Any]) -> web.Response:
    """Sends a whole body here and not after the handler, so that the request is completed once it is sent."""
    response = json_response(body, headers=ledger.head)
    ledger.response = response
    ledger.replied(response)
    async with reading_client(ledger):
        await response.prepare(ledger.inquiry.request)
        await response.write_eof()
    ledger.completed(response.status)
    return response
