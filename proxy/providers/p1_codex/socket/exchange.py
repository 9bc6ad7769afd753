"""One request and its answer over a socket, which is closed at the end or kept for the next turn.

Only events of the answer are progress. Pings and quota events show that the connection works, not that the model does.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import aiohttp

from proxy.core.reducer import EOF
from proxy.core.responses_events import incomplete_reason, responses_failure
from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.observe.capture.contract import NULL_ATTEMPT, AttemptCapture, RequestCapture
from proxy.observe.lifecycle import Log
from proxy.observe.timings import Timings
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import PROFILE, SERVICE
from proxy.providers.p1_codex.socket.connect import SocketTimers, socket_url
from proxy.providers.p1_codex.socket.connection import CLOSED, FRAGMENT_BYTES, Reading, Socket
from proxy.providers.p1_codex.socket.frames import FAULTS, SIZE, fault_error, is_progress
from proxy.providers.p1_codex.socket.handshake import USE_HTTP
from proxy.providers.p1_codex.socket.turn_continuation import TurnContinuation
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.transport import Batch, UpstreamRequest

#: After this many unanswered pings in a row the connection is dead.
MISSED_PONGS = 2

PING = "ping"


class Keepalive:
    """Watches one answer. `due` returns the action for a moment, `next` when to ask again."""

    def __init__(self, timers: SocketTimers, now: float) -> None:
        self._timers = timers
        self._progress = now
        self._started = False
        self._signal = now  # the last frame, or the last ping of ours
        self._pings = 0  # since the last frame

    def heard(self, now: float, *, progress: bool) -> None:
        """Notes a frame; `progress` when it belongs to the answer."""
        self._signal, self._pings = now, 0
        if progress:
            self._progress, self._started = now, True

    def moved(self, now: float) -> None:
        """Notes that a piece of the request went out: the connection lives, and the answer is not due yet."""
        self._signal = self._progress = now
        self._pings = 0

    def pinged(self, now: float) -> None:
        self._signal = now
        self._pings += 1

    @property
    def next(self) -> float:
        return min(self._progress + self._limit, self._signal + self._timers.ping)

    def due(self, now: float) -> str | None:
        """PING, the fault that ends the answer (a key of `frames.FAULTS`), or None for nothing yet."""
        if now >= self._progress + self._limit:
            return "ws_idle_timeout" if self._started else "ws_start_timeout"
        if now < self._signal + self._timers.ping:
            return None
        return "ws_keepalive" if self._pings >= MISSED_PONGS else PING

    @property
    def _limit(self) -> float:
        return self._timers.idle if self._started else self._timers.start


BEFORE_THE_REQUEST = "it came before the request"


class Upgrade(NamedTuple):
    """Address and headers of the request that opens a socket."""

    url: str
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, for either transport; the unused form is never written.

    post     the request over HTTP
    upgrade  opens a socket for it
    frame    the request over a socket, by the continuation's plan at that moment
    renewed  whether the token was already renewed for this request
    """

    post: Callable[[], UpstreamRequest]
    upgrade: Callable[[], Upgrade]
    frame: Callable[[], Awaitable[bytes]]
    request_id: str
    number: int
    renewed: bool
    log: Log
    capture: RequestCapture
    timings: Timings

    def note(self, level: str, msg: str, **fields: Any) -> None:
        self.log.write(level, LABEL, f"{SERVICE}_{msg}", reqId=self.request_id, attempt=self.number, **fields)


class SocketExchange:
    """A request over a socket. Use once.

    sent  whether the request began to go out: from then on the model may be at work
    size  of the request, in bytes
    died  whether the socket died before the answer was whole; None while that is open
    """

    def __init__(self, socket: Socket, attempt: Attempt, continuation: TurnContinuation, timers: SocketTimers) -> None:
        self.sent = False
        self.size = 0
        self.died: bool | None = None
        self._socket = socket
        self._attempt = attempt
        self._continuation = continuation
        self._timers = timers
        self._capture: AttemptCapture = NULL_ATTEMPT
        plan = continuation.plan
        self._continued, self._previous = plan.continues, plan.previous
        self._begun = not plan.continues  # whether the next event belongs to the answer
        self._now = asyncio.get_running_loop().time
        self._keepalive = Keepalive(timers, self._now())
        self._unsent = True  # whether part of the request is still to be sent
        self._sending: asyncio.Task[None] | None = None

    async def run(self) -> Batches:
        """Yields the events of the answer; EOF in place of the last one when the socket breaks. Raises
        UpstreamError."""
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
                    self.died = False
                    clean = reading.end is None and len(batch) == len(reading.events) and not self._unsent
                    kept = clean and is_complete(last) and self._continuation.keep(self._socket, _response_of(last))
                    self._attempt.note("info", "websocket_stream_completed", kept=kept)
                elif reading.end is not None:
                    self.died = True
                if batch:
                    self._capture.events(batch)
                    yield batch
                if last is not None:
                    return
                if reading.end == CLOSED and not self._unsent:
                    self._capture.failed("the socket was closed before the last event")
                    yield [EOF]
                    return
                if reading.end is not None:
                    raise self._fault(reading.end if reading.end != CLOSED else "ws_send")
        except UpstreamError as error:
            self.died = True
            self._capture.failed(error.message)
            raise
        finally:
            if self._sending is not None:
                self._sending.cancel()  # it must write nothing from now on
            if not kept:
                await self._socket.close()

    async def _require_silence(self) -> None:
        """Fails when anything came before the request, since it and what follows may not answer this request. On a
        continued socket the answer names its beginning."""
        try:
            async with asyncio.timeout(0):
                reading = await self._socket.read()
        except TimeoutError:
            return
        if not self._continued and any(map(is_progress, reading.events)):
            raise _stray(BEFORE_THE_REQUEST)
        if reading.end is not None or not all([await self._in_time(self._socket.pong(one)) for one in reading.pings]):
            raise self._fault(reading.end if reading.end not in (None, CLOSED) else "ws_send")

    # -- the request

    async def _send(self) -> None:
        """Begins to send, and continues while the socket is read: the backend gives up a socket whose pings are not
        answered."""
        message = await self._attempt.frame()
        fields = {"bytes": len(message), "socket": self._socket.number, "whole": self._continuation.plan.reason}
        self._attempt.note("info", "upstream_request_started", **fields)
        self._capture = self._recorded(message)
        self.sent, self.size = True, len(message)
        if len(message) <= FRAGMENT_BYTES:
            await self._write(message)  # does not wait
        else:
            self._sending = asyncio.create_task(self._write(message))

    def _recorded(self, message: bytes) -> AttemptCapture:
        attempt, plan = self._attempt, self._continuation.plan
        upgrade = attempt.upgrade()
        capture = attempt.capture.attempt(
            transport="websocket",
            method="GET",
            url=socket_url(upgrade.url),
            headers=upgrade.headers,
            body=message,
            number=attempt.number,
            socket=self._socket.number,
            pooled=plan.continues,
            continuation=plan.reason or "continued",
        )
        capture.answered(101, self._socket.headers)
        return capture

    async def _write(self, message: bytes) -> None:
        """Writes the frame. The reader notices a connection that breaks meanwhile."""
        with suppress(aiohttp.ClientError, OSError):
            await self._socket.send(message, lambda: self._keepalive.moved(self._now()))
            self._unsent = False

    # -- the answer

    async def _next(self) -> Reading:
        """Reads the next messages. Raises UpstreamError after too long a silence."""
        while True:
            try:
                async with asyncio.timeout_at(self._keepalive.next):
                    reading = await self._socket.read()
            except TimeoutError:
                await self._after_silence()
                continue
            if not self._begun:
                reading.events = self._from_the_beginning(reading.events)
            if self._unsent and any(map(_is_output, reading.events)):
                raise _stray(BEFORE_THE_REQUEST)
            self._keepalive.heard(self._now(), progress=any(map(is_progress, reading.events)))
            for payload in reading.pings:
                if not await self._in_time(self._socket.pong(payload)):
                    reading.end = reading.end or CLOSED  # what was read before still counts
            if reading.events or reading.end is not None:
                return reading

    def _from_the_beginning(self, events: Batch) -> Batch:
        """The events without those left over from the previous answer, which carry no id. Output counts only after the
        backend has named another response."""
        for place, event in enumerate(events):
            named = _response_of(event)
            if named != self._previous and (named or event.get("type") == "response.created" or PROFILE.is_last(event)):
                self._begun = True
                return [*itertools.filterfalse(is_progress, events[:place]), *events[place:]]
        return [*itertools.filterfalse(is_progress, events)]

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
            async with asyncio.timeout(self._timers.ping_send):
                await signal
        except (TimeoutError, aiohttp.ClientError, OSError):
            return False
        return True

    def _fault(self, code: str) -> UpstreamError:
        seconds = self._timers.start if code == "ws_start_timeout" else self._timers.idle
        hint = f"; {USE_HTTP}" if FAULTS[code].unreadable or code == SIZE else ""
        return fault_error(code, seconds=seconds, continued=self._continued, hint=hint)


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


def _is_output(event: dict[str, Any]) -> bool:
    """Whether an event belongs to an answer and is no refusal."""
    return is_progress(event) and responses_failure(event) is None


def _stray(words: str) -> UpstreamError:
    """The error for an event over the socket that answers no request of ours; another request will not get it."""
    return PROFILE.error(f"unreadable answer: {words}; {USE_HTTP}", kind="transport", code=PROTOCOL_ERROR)


def is_complete(event: dict[str, Any]) -> bool:
    """Whether the last event of an answer says that it is complete."""
    done = event.get("type") == "response.completed"
    return done and responses_failure(event) is None and incomplete_reason(event) is None
