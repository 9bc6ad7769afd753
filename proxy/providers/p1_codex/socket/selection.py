"""The way of one request to the backend: over a socket, or over HTTP when no socket can be had.

Which it is, is decided before anything is asked: once the request was handed to a socket it never goes over HTTP, since
the model may be at work on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import aiohttp

from proxy.core.responses_events import incomplete_reason, responses_failure
from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.observe.lifecycle import Log
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import SERVICE, WIRE
from proxy.providers.p1_codex.socket.connect import opening_of
from proxy.providers.p1_codex.socket.connection import CLOSED, Reading, Socket
from proxy.providers.p1_codex.socket.frames import FAULTS, fault_error, is_progress
from proxy.providers.p1_codex.socket.handshake import UNAUTHORIZED, WITHOUT, HandshakeFailed
from proxy.providers.p1_codex.socket.keepalive import PING, Timers, Vitals
from proxy.providers.p1_codex.socket.turn_continuation import Conversation, Sockets
from proxy.providers.upstream.transport import EOF, Batch, Outgoing, Transport

AUTO, WEBSOCKET, HTTP = "auto", "websocket", "http"


@dataclass(frozen=True, slots=True)
class Sending:
    """One attempt, in both forms; only the one that is used is made.

    post     the request over HTTP
    url, headers  of the upgrade
    frame    the request over a socket, by the conversation's plan at that moment
    renewed  whether the token was renewed for this request already
    """

    post: Callable[[], Outgoing]
    url: str
    headers: dict[str, str]
    frame: Callable[[], bytes]
    request_id: str
    attempt: int
    renewed: bool


class Line:
    """Sends the attempts of one request. Use once a request."""

    def __init__(self, mode: str, sockets: Sockets, http: Transport, conversation: Conversation, log: Log) -> None:
        self._mode = mode
        self._sockets = sockets
        self._http = http
        self._conversation = conversation
        self._log = log
        self._asked = False  # whether a socket was handed the request

    def stream(self, sending: Sending) -> AsyncGenerator[Batch, None]:
        """The events of one answer; EOF in place of the last one when a socket breaks. Raises UpstreamError."""
        return self._http(sending.post()) if self._mode == HTTP else self._over_a_socket(sending)

    async def _over_a_socket(self, sending: Sending) -> AsyncGenerator[Batch, None]:
        """The same over a socket, or over HTTP when none can be had."""
        socket = await self._socket(sending)
        answer = self._http(sending.post()) if socket is None else _Exchange(self, socket, sending).run()
        async with aclosing(answer) as batches:
            async for batch in batches:
                yield batch

    async def _socket(self, sending: Sending) -> Socket | None:
        """An open socket; None for HTTP, which then stays the way of this request."""
        if sending.attempt > 1:
            self._conversation.send_whole()
        elif (socket := await self._conversation.socket(opening_of(sending.url, sending.headers))) is not None:
            return socket
        may_post, renewed = self._mode == AUTO and not self._asked, sending.renewed
        try:
            socket = await self._sockets.open(sending.url, sending.headers, hurried=may_post, renewed=renewed)
        except HandshakeFailed as failure:
            # the upgrade path has been seen to refuse tokens that HTTP takes, but first the token is renewed
            if not may_post or (failure.status == UNAUTHORIZED and not renewed):
                raise failure.error from None
            self._mode = HTTP
            self.note("info", "websocket_fallback", sending, status=failure.status, message=failure.error.message)
            return None
        self.note("info", "websocket_opened", sending, socket=socket.number, upstreamId=socket.upstream_id)
        return socket

    def asks(self) -> None:
        """From now on the model may be at work."""
        self._asked = True

    def note(self, level: str, msg: str, sending: Sending, **fields: Any) -> None:
        self._log.write(level, LABEL, f"{SERVICE}_{msg}", reqId=sending.request_id, attempt=sending.attempt, **fields)

    @property
    def timers(self) -> Timers:
        return self._sockets.timers

    @property
    def conversation(self) -> Conversation:
        return self._conversation


class _Exchange:
    """One request and its answer over a socket, which is closed at the end or kept for the next turn."""

    def __init__(self, line: Line, socket: Socket, sending: Sending) -> None:
        self._line = line
        self._socket = socket
        self._sending = sending
        self._continued, self._previous = line.conversation.plan.continues, line.conversation.plan.previous
        self._now = asyncio.get_running_loop().time
        self._vitals = Vitals(line.timers, self._now())

    async def run(self) -> AsyncGenerator[Batch, None]:
        kept = False
        try:
            await self._hear_nothing()
            await self._ask()
            while True:
                reading = await self._next()
                batch, last = _up_to_the_last(reading.events)
                if self._continued and any(_response_of(event) == self._previous for event in batch):
                    raise _stray("it belongs to an earlier request")
                if last is not None:
                    clean = reading.end is None and len(batch) == len(reading.events)
                    kept = clean and is_complete(last) and self._keep(last)
                    self._line.note("info", "websocket_stream_completed", self._sending, kept=kept)
                if batch:
                    yield batch
                if last is not None:
                    return
                if reading.end == CLOSED:
                    yield [EOF]
                    return
                if reading.end is not None:
                    raise self._fault(reading.end)
        finally:
            if not kept:
                await self._socket.close()

    async def _hear_nothing(self) -> None:
        """What is there before anything was asked is no answer to it, and neither may be what follows."""
        try:
            async with asyncio.timeout(0):
                reading = await self._socket.read()
        except TimeoutError:
            return
        if any(map(is_progress, reading.events)):
            raise _stray("it came before the request")
        if reading.end is not None or not all([await self._said(self._socket.pong(one)) for one in reading.pings]):
            raise self._fault(reading.end if reading.end not in (None, CLOSED) else "ws_send")

    async def _ask(self) -> None:
        frame, plan = self._sending.frame(), self._line.conversation.plan
        fields = {"bytes": len(frame), "socket": self._socket.number, "whole": plan.reason}
        self._line.note("info", "upstream_request_started", self._sending, **fields)
        self._line.asks()
        try:
            async with asyncio.timeout(self._line.timers.start):
                await self._socket.send(frame)
        except TimeoutError:
            raise self._fault("ws_start_timeout") from None
        except (aiohttp.ClientError, OSError):
            raise self._fault("ws_send") from None

    async def _next(self) -> Reading:
        """What comes next. Raises UpstreamError when nothing does for too long."""
        while True:
            try:
                async with asyncio.timeout_at(self._vitals.next):
                    reading = await self._socket.read()
            except TimeoutError:
                await self._after_silence()
                continue
            self._vitals.heard(self._now(), progress=any(map(is_progress, reading.events)))
            for payload in reading.pings:
                if not await self._said(self._socket.pong(payload)):
                    reading.end = reading.end or CLOSED  # what was read before counts all the same
            if reading.events or reading.end is not None:
                return reading

    async def _after_silence(self) -> None:
        due = self._vitals.due(self._now())
        if due == PING:
            if not await self._said(self._socket.ping()):
                raise self._fault("ws_keepalive")
            self._vitals.pinged(self._now())
        elif due is not None:
            raise self._fault(due)

    async def _said(self, sign_of_life: Awaitable[None]) -> bool:
        """Whether a ping or pong could be sent in time."""
        try:
            async with asyncio.timeout(self._line.timers.ping_send):
                await sign_of_life
        except (TimeoutError, aiohttp.ClientError, OSError):
            return False
        return True

    def _fault(self, code: str) -> UpstreamError:
        timers = self._line.timers
        seconds = timers.start if code == "ws_start_timeout" else timers.idle
        error = fault_error(code, seconds=seconds, continued=self._continued)
        if FAULTS[code].unreadable:
            error.message += f"; {WITHOUT}"
        return error

    def _keep(self, last: dict[str, Any]) -> bool:
        return self._line.conversation.keep(self._socket, _response_of(last))


def _up_to_the_last(events: Batch) -> tuple[Batch, dict[str, Any] | None]:
    """The events up to the last one of the answer, and that one when it is among them."""
    for place, event in enumerate(events):
        if WIRE.is_last(event):
            return events[: place + 1], event
    return events, None


def _response_of(event: dict[str, Any]) -> str:
    """The id of the response that an event tells of, "" when it names none."""
    response = event.get("response")
    number = response.get("id") if isinstance(response, dict) else None
    return number if isinstance(number, str) else ""


def _stray(words: str) -> UpstreamError:
    """The socket brought something that is no answer to this request. Another socket knows nothing of it."""
    message = f"{LABEL}: unreadable answer: {words}; {WITHOUT}"
    return UpstreamError(message, kind="transport", provider=LABEL, code=PROTOCOL_ERROR)


def is_complete(event: dict[str, Any]) -> bool:
    """Whether the last event of an answer says that all of it is there."""
    done = event.get("type") == "response.completed"
    return done and responses_failure(event) is None and incomplete_reason(event) is None
