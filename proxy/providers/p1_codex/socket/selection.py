"""The transport of one request to the backend: a socket, or HTTP when no socket can be opened.

That is decided before anything is sent: once a request was sent over a socket it never goes over HTTP, since the model
may be at work on it.
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
from proxy.providers.p1_codex.failures import PROFILE, SERVICE
from proxy.providers.p1_codex.socket.connect import upgrade_digest
from proxy.providers.p1_codex.socket.connection import CLOSED, Reading, Socket
from proxy.providers.p1_codex.socket.frames import FAULTS, fault_error, is_progress
from proxy.providers.p1_codex.socket.handshake import UNAUTHORIZED, USE_HTTP, HandshakeFailed
from proxy.providers.p1_codex.socket.keepalive import PING, Keepalive, SocketTimers
from proxy.providers.p1_codex.socket.manager import SocketManager
from proxy.providers.p1_codex.socket.turn_continuation import TurnContinuation
from proxy.providers.upstream.transport import EOF, Batch, Transport, UpstreamRequest

AUTO, WEBSOCKET, HTTP = "auto", "websocket", "http"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, for either transport; the form that is not used is never written.

    post          the request over HTTP
    url, headers  of the upgrade
    frame         the request over a socket, by the plan of the continuation at that moment
    renewed       whether the token was renewed for this request already
    """

    post: Callable[[], UpstreamRequest]
    url: str
    headers: dict[str, str]
    frame: Callable[[], bytes]
    request_id: str
    number: int
    renewed: bool


class TransportSelection:
    """Sends the attempts of one request. Use once a request."""

    def __init__(
        self, mode: str, sockets: SocketManager, http: Transport, continuation: TurnContinuation, log: Log
    ) -> None:
        self._mode = mode
        self._sockets = sockets
        self._http = http
        self.continuation = continuation
        self._log = log
        self._sent = False  # whether the request was sent over a socket

    def stream(self, attempt: Attempt) -> AsyncGenerator[Batch, None]:
        """The events of one answer; EOF in place of the last one when a socket breaks. Raises UpstreamError."""
        return self._http(attempt.post()) if self._mode == HTTP else self._over_a_socket(attempt)

    async def _over_a_socket(self, attempt: Attempt) -> AsyncGenerator[Batch, None]:
        """The same over a socket, or over HTTP when none can be had."""
        socket = await self._socket(attempt)
        answer = self._http(attempt.post()) if socket is None else _SocketExchange(self, socket, attempt).run()
        async with aclosing(answer) as batches:
            async for batch in batches:
                yield batch

    async def _socket(self, attempt: Attempt) -> Socket | None:
        """An open socket; None for HTTP, which this request then keeps to."""
        if attempt.number > 1:
            self.continuation.send_whole()
        elif (socket := await self.continuation.socket(upgrade_digest(attempt.url, attempt.headers))) is not None:
            return socket
        may_post, renewed = self._mode == AUTO and not self._sent, attempt.renewed
        try:
            socket = await self._sockets.open(attempt.url, attempt.headers, hurried=may_post, renewed=renewed)
        except HandshakeFailed as failure:
            # the upgrade path has been seen to refuse tokens that HTTP takes, but first the token is renewed
            if not may_post or (failure.status == UNAUTHORIZED and not renewed):
                raise failure.error from None
            self._mode = HTTP
            self.note("info", "websocket_fallback", attempt, status=failure.status, message=failure.error.message)
            return None
        self.note("info", "websocket_opened", attempt, socket=socket.number, upstreamId=socket.upstream_id)
        return socket

    def sent(self) -> None:
        """The request is being sent over a socket: from now on the model may be at work."""
        self._sent = True

    def note(self, level: str, msg: str, attempt: Attempt, **fields: Any) -> None:
        self._log.write(level, LABEL, f"{SERVICE}_{msg}", reqId=attempt.request_id, attempt=attempt.number, **fields)

    @property
    def timers(self) -> SocketTimers:
        return self._sockets.timers


class _SocketExchange:
    """One request and its answer over a socket, which is closed at the end or kept for the next turn."""

    def __init__(self, selection: TransportSelection, socket: Socket, attempt: Attempt) -> None:
        self._selection = selection
        self._socket = socket
        self._attempt = attempt
        plan = selection.continuation.plan
        self._continued, self._previous = plan.continues, plan.previous
        self._now = asyncio.get_running_loop().time
        self._keepalive = Keepalive(selection.timers, self._now())

    async def run(self) -> AsyncGenerator[Batch, None]:
        kept = False
        try:
            await self._require_silence()
            await self._send()
            while True:
                reading = await self._next()
                batch, last = _up_to_the_last(reading.events)
                if self._continued and any(_response_of(event) == self._previous for event in batch):
                    raise _stray("it belongs to an earlier request")
                if last is not None:
                    clean = reading.end is None and len(batch) == len(reading.events)
                    kept = clean and is_complete(last) and self._keep(last)
                    self._selection.note("info", "websocket_stream_completed", self._attempt, kept=kept)
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

    async def _require_silence(self) -> None:
        """What arrived before the request is no answer to it, and what follows may not be one either."""
        try:
            async with asyncio.timeout(0):
                reading = await self._socket.read()
        except TimeoutError:
            return
        if any(map(is_progress, reading.events)):
            raise _stray("it came before the request")
        if reading.end is not None or not all([await self._in_time(self._socket.pong(one)) for one in reading.pings]):
            raise self._fault(reading.end if reading.end not in (None, CLOSED) else "ws_send")

    async def _send(self) -> None:
        frame, plan = self._attempt.frame(), self._selection.continuation.plan
        fields = {"bytes": len(frame), "socket": self._socket.number, "whole": plan.reason}
        self._selection.note("info", "upstream_request_started", self._attempt, **fields)
        self._selection.sent()
        try:
            async with asyncio.timeout(self._selection.timers.start):
                await self._socket.send(frame)
        except TimeoutError:
            raise self._fault("ws_start_timeout") from None
        except (aiohttp.ClientError, OSError):
            raise self._fault("ws_send") from None

    async def _next(self) -> Reading:
        """What comes next. Raises UpstreamError when nothing does for too long."""
        while True:
            try:
                async with asyncio.timeout_at(self._keepalive.next):
                    reading = await self._socket.read()
            except TimeoutError:
                await self._after_silence()
                continue
            self._keepalive.heard(self._now(), progress=any(map(is_progress, reading.events)))
            for payload in reading.pings:
                if not await self._in_time(self._socket.pong(payload)):
                    reading.end = reading.end or CLOSED  # what was read before counts all the same
            if reading.events or reading.end is not None:
                return reading

    async def _after_silence(self) -> None:
        due = self._keepalive.due(self._now())
        if due == PING:
            if not await self._in_time(self._socket.ping()):
                raise self._fault("ws_keepalive")
            self._keepalive.pinged(self._now())
        elif due is not None:
            raise self._fault(due)

    async def _in_time(self, signal: Awaitable[None]) -> bool:
        """Whether a ping or pong could be sent in time."""
        try:
            async with asyncio.timeout(self._selection.timers.ping_send):
                await signal
        except (TimeoutError, aiohttp.ClientError, OSError):
            return False
        return True

    def _fault(self, code: str) -> UpstreamError:
        timers = self._selection.timers
        seconds = timers.start if code == "ws_start_timeout" else timers.idle
        hint = f"; {USE_HTTP}" if FAULTS[code].unreadable else ""
        return fault_error(code, seconds=seconds, continued=self._continued, hint=hint)

    def _keep(self, last: dict[str, Any]) -> bool:
        return self._selection.continuation.keep(self._socket, _response_of(last))


def _up_to_the_last(events: Batch) -> tuple[Batch, dict[str, Any] | None]:
    """The events up to the last one of the answer, and that one when it is among them."""
    for place, event in enumerate(events):
        if PROFILE.is_last(event):
            return events[: place + 1], event
    return events, None


def _response_of(event: dict[str, Any]) -> str:
    """The id of the response that an event belongs to, "" when it names none."""
    response = event.get("response")
    number = response.get("id") if isinstance(response, dict) else None
    return number if isinstance(number, str) else ""


def _stray(words: str) -> UpstreamError:
    """Something came over the socket that is no answer to this request; it will not come over another one."""
    return PROFILE.error(f"unreadable answer: {words}; {USE_HTTP}", kind="transport", code=PROTOCOL_ERROR)


def is_complete(event: dict[str, Any]) -> bool:
    """Whether the last event of an answer says that all of it is there."""
    done = event.get("type") == "response.completed"
    return done and responses_failure(event) is None and incomplete_reason(event) is None
