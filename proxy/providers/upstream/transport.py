"""Sends a request to an upstream over HTTP and reads its events.

A transport is a function from an `UpstreamRequest` to an async generator of event batches, one batch for each piece of
data read. The reducer does not know which one feeds it. This one uses HTTP with server-sent events; an
`UpstreamProfile` describes how upstreams differ.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp

from proxy.core.bodies.decode import load_any_json
from proxy.core.error_bodies import error_event_of, error_of_body, error_of_value
from proxy.core.hiding.secret import blanked
from proxy.core.media.pieces import Pieces
from proxy.core.sizes import LARGE_BYTES
from proxy.core.upstream_failures import Failure, failure_of, is_refusal, passes
from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.observe.capture.contract import NULL_ATTEMPT, NULL_CAPTURE, AttemptCapture, RequestCapture
from proxy.observe.lifecycle import Log
from proxy.observe.timings import Timings
from proxy.off_loop import in_thread_if
from proxy.providers.upstream.aiohttp_internals import TakePiece, UnpacksTooLarge
from proxy.providers.upstream.client import TRUST, in_pieces, post, read_error
from proxy.providers.upstream.event_reader import Batch as Batch
from proxy.providers.upstream.event_reader import Batches, EventReader, PauseTimer, Pump, Read
from proxy.providers.upstream.failures import parse_retry_after
from proxy.providers.upstream.text_runs import RESPONSES_RUNS, TextRuns

#: A longer JSON answer (search results, or a whole answer instead of a stream) is refused.
MAX_JSON_BYTES = 8 * 1024 * 1024

#: A body that is written when the request is sent, in a thread.
Written = Callable[[], Awaitable[bytes]]

#: The beginning of a JSON body, which no frame of a stream has.
_JSON = (b"{", b"[")
#: The peer has switched to another protocol.
SWITCHED = 101
#: Statuses of an answer with a body.
_ANSWERED = range(200, 204)

#: Kind and status of a failure inside a stream without a known name: a gateway's own.
UNKNOWN = ("upstream", 502)


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One attempt: address, headers, serialised body, and where it is recorded. With a body of pieces the headers must
    give its length. `timings` belong to the request that it answers; a question on the side has its own. `head_s` is
    how long the head may take once the body was sent, None for the usual time."""

    url: str
    headers: dict[str, str]
    body: bytes | Pieces | Written
    request_id: str
    attempt: int
    capture: RequestCapture = NULL_CAPTURE
    timings: Timings = field(default_factory=Timings)
    head_s: float | None = None


Transport = Callable[[UpstreamRequest], Batches]

#: Receives the headers of a request and of its answer, refusals included, before anything is read.
HeaderObserver = Callable[[Mapping[str, str], Mapping[str, str]], None]


@dataclass(frozen=True, slots=True)
class Service:
    """An upstream by name.

    label, service    its names in errors and in the log
    empty_is_failure  whether an empty answer is a failure
    """

    label: str
    service: str
    empty_is_failure: bool = field(default=False, kw_only=True)

    def error(self, what: str, **details: Any) -> UpstreamError:
        """An error of this upstream."""
        return UpstreamError(f"{self.label}: {what}", provider=self.label, **details)


@dataclass(frozen=True, slots=True)
class UpstreamProfile(Service):
    """The differences of an upstream below translation, if it answers with server-sent events.

    is_last           whether an event ends the stream
    refusal           the error for a failure event or an answer that is not 200: `(event, upstream request id)`
    eof               yielded when a body ends early or cannot be read on, before that is an error; None for nothing
    whole             a whole answer in JSON as events; None for what is no answer
    noted             headers of an answer that the log keeps
    lenient           invalid text in an event is repaired, and the last frame may lack its blank line; False makes
                      errors of both
    runs              joins events that are pieces of one text
    """

    is_last: Callable[[dict[str, Any]], bool]
    refusal: Callable[[Failure, str | None], UpstreamError]
    eof: dict[str, Any] | None = None
    whole: Callable[[Mapping[str, Any]], Batch | None] = lambda _answer: None
    noted: tuple[str, ...] = ()
    lenient: bool = False
    runs: TextRuns = RESPONSES_RUNS


@dataclass(frozen=True, slots=True)
class HttpTimers:
    """Limits in seconds.

    head       until the head of an answer: most services send it at once, and reasoning comes as events
    idle       a body that pauses longer is given up. Any byte counts, comments too
    drain      how long to read the connection after the last event, so that it can be used again
    after_end  the same for a body that is passed on unchanged
    """

    head: float = 300.0
    idle: float = 300.0
    drain: float = 0.05
    after_end: float = 2.0


@dataclass(frozen=True, slots=True)
class OpenAnswer:
    """An answer whose head has come. Its body, still to be read through `pauses`, is recorded in `capture`."""

    response: aiohttp.ClientResponse
    capture: AttemptCapture
    pauses: PauseTimer

    async def error_body(self) -> bytes:
        """The beginning of an error's body."""
        body = await read_error(self.response)
        self.capture.refused(body)
        return body


class HttpTransport:
    """Sends a POST that is answered by server-sent events."""

    def __init__(
        self,
        profile: UpstreamProfile,
        session: aiohttp.ClientSession,
        log: Log,
        clock: Callable[[], float],
        *,
        observe_headers: HeaderObserver = lambda _sent, _answered: None,
        timers: HttpTimers | None = None,
    ) -> None:
        self._profile = profile
        self._observe_headers = observe_headers
        self.timers = timers or HttpTimers()
        self._session = session
        self._log = log
        self._clock = clock

    async def stream(self, request: UpstreamRequest) -> Batches:
        """The events of one answer. Raises UpstreamError; ends only after the last event."""
        reader = EventReader(self._profile.runs, lenient=self._profile.lenient, unreadable=self._unreadable)
        pump = Pump(reader, self._profile.is_last)
        events, begun, terminal = 0, False, False
        started = time.monotonic()
        async with self.open(request) as answer:
            await self._check(answer)
            try:
                while not terminal:
                    chunk, failure = await self._chunk(answer, pump)
                    first = b"" if begun else chunk.lstrip()[:1]
                    if first == b"<":
                        raise self._failure("the answer is a page in place of a stream", kind="bad_answer")
                    begun = begun or not chunk.isspace()
                    if first in _JSON:
                        batches: Iterable[Read] = [(await self.whole(answer, chunk), None)]
                        terminal = True
                    else:
                        batches = pump.left() or await reader.read(chunk)
                    for number, (batch, unreadable) in enumerate(batches):
                        if number:
                            await asyncio.sleep(0)
                        if batch:
                            events += len(batch)
                            terminal = terminal or any(map(self._profile.is_last, reversed(batch)))
                            pump.to = yield batch
                        failure = failure or unreadable
                        if terminal:
                            break
                    if failure is not None and not terminal:
                        if self._profile.eof is not None:
                            answer.capture.failed(failure.message)
                            yield [self._profile.eof]  # no more is read when that was all
                        raise failure
            finally:
                if terminal:
                    self._note(request, "http_stream_completed", events=events + pump.events, ms=_ms(started))
                    await self._drain(answer)

    async def json(self, request: UpstreamRequest) -> dict[str, Any]:
        """The JSON answer of one call that does not stream. Raises UpstreamError."""
        async with self.open(request) as answer:
            await self._check(answer)
            return await self._read_json(answer)

    async def _read_json(self, answer: OpenAnswer, begun: bytes = b"") -> dict[str, Any]:
        """The JSON object in the body after `begun`. Raises UpstreamError."""
        body = bytearray(begun)
        while chunk := await self.read(answer):
            body += chunk
            if len(body) > MAX_JSON_BYTES:
                raise self._failure(f"the answer passed {MAX_JSON_BYTES} bytes", repeatable=False)
        try:
            value = await in_thread_if(len(body) > LARGE_BYTES, partial(load_any_json, body))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise self._failure("the answer is not a JSON object", kind="bad_answer")
        return value

    async def whole(self, answer: OpenAnswer, begun: bytes = b"") -> Batch:
        """The events of an answer that is not a stream: from a gateway without streams, or from one that failed. Raises
        UpstreamError when it is neither."""
        value = await self._read_json(answer, begun)
        events = self._profile.whole(value)
        if events is not None:
            return events
        if not error_of_value(value):
            raise self._failure("the answer is neither a stream nor a whole answer", kind="bad_answer")
        return [error_event_of(value)]

    async def _chunk(self, answer: OpenAnswer, pump: Pump) -> tuple[bytes, UpstreamError | None]:
        """The next piece of a stream that the pump did not take, or why there is none."""
        try:
            chunk = await self.read(answer, None if pump.to is None else pump.take)
        except UpstreamError as error:
            return b"", error
        cut = "the upstream cut the answer: it ended before its last event"
        return chunk, None if chunk else self._unreadable(cut)

    @asynccontextmanager
    async def open(self, request: UpstreamRequest) -> AsyncGenerator[OpenAnswer, None]:
        """Yields an answer with any status, its body still to be read. Raises UpstreamError when there is none."""
        body = await request.body() if callable(request.body) else request.body
        self._note(request, "upstream_request_started", bytes=body.size if isinstance(body, Pieces) else len(body))
        capture = request.capture.attempt(
            transport="http",
            method="POST",
            url=request.url,
            headers=request.headers,
            body=b"" if isinstance(body, Pieces) else body,
            number=request.attempt,
        )
        started = time.monotonic()
        request.timings.sent(request.attempt)
        try:
            response = await self._send(request, body)
            del body  # an answer may take minutes
            try:
                self._answered(request, response, capture, _ms(started))
                with contextlib.closing(PauseTimer(response.content, self.timers.idle)) as pauses:
                    yield OpenAnswer(response, capture, pauses)
            finally:
                release(response)
        except UpstreamError as error:
            capture.failed(error.message)
            raise

    def _answered(
        self, request: UpstreamRequest, response: aiohttp.ClientResponse, capture: AttemptCapture, ms: int
    ) -> None:
        """Notes that the head of an answer has come."""
        upstream_id = blanked(response.headers.get("x-request-id", "")) or None
        request.timings.answered(upstream_id)
        details: dict[str, Any] = {"status": response.status, "ms": ms, "upstreamId": upstream_id}
        if self._profile.noted:
            details["headers"] = {name: blanked(response.headers.get(name, "")) for name in self._profile.noted}
        self._note(request, "upstream_response_received", **details)
        capture.answered(response.status, response.headers, ms=ms)
        self._observe_headers(request.headers, response.headers)

    async def _send(self, request: UpstreamRequest, body: bytes | Pieces) -> aiohttp.ClientResponse:
        timeout_s = self.timers.head if request.head_s is None else request.head_s
        try:
            async with asyncio.timeout(timeout_s) as timer:
                data, headers = in_pieces(body, request.headers, timer, timeout_s)
                return await post(self._session, request.url, data, headers, request.timings)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise unreachable(self._profile, error, timeout_s) from None

    async def read(self, answer: OpenAnswer, take: TakePiece | None = None) -> bytes:
        """The next piece of a body, b"" at its end. Raises UpstreamError.

        take  takes pieces where they arrive, so that they are not returned; not of an answer that is captured
        """
        try:
            chunk = await answer.pauses.read(take if answer.capture is NULL_ATTEMPT else None)
        except TimeoutError:
            raise self._failure(f"the answer paused for {self.timers.idle * 1000:.0f} ms") from None
        except UnpacksTooLarge as error:
            raise self._failure(str(error), kind="bad_answer", repeatable=False) from None
        except (aiohttp.ClientError, OSError):
            raise self._failure("the upstream cut the answer: the connection broke") from None
        answer.capture.data(chunk)
        return chunk

    async def _drain(self, answer: OpenAnswer) -> None:
        if answer.response.content.at_eof():
            return
        try:
            async with asyncio.timeout(self.timers.drain):
                while chunk := await answer.response.content.readany():
                    answer.capture.data(chunk)
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass

    async def _check(self, answer: OpenAnswer) -> None:
        """Raises the error of an unsuccessful answer."""
        status, headers = answer.response.status, answer.response.headers
        if status in _ANSWERED:
            return
        if not is_refusal(status):
            raise unexpected(self._profile, status)
        raise refusal_of(self._profile, status, headers, await answer.error_body(), now=self._clock())

    def _note(self, request: UpstreamRequest, msg: str, **fields: Any) -> None:
        msg = f"{self._profile.service}_{msg}"
        self._log.write("info", self._profile.label, msg, reqId=request.request_id, attempt=request.attempt, **fields)

    def _failure(
        self, what: str, *, kind: str = "transport", repeatable: bool = True, code: str | None = None
    ) -> UpstreamError:
        return self._profile.error(what, kind=kind, repeatable=repeatable, code=code)

    def _unreadable(self, what: str, *, repeatable: bool = True) -> UpstreamError:
        return self._failure(what, repeatable=repeatable, code=PROTOCOL_ERROR)


def unreachable(service: Service, error: Exception, timeout_s: float) -> UpstreamError:
    """The error for a request that got no answer.

    timeout_s  how long it could have taken
    """
    if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
        # The model may already be at work, so this is not sent again.
        return service.error(f"no answer within {timeout_s * 1000:.0f} ms", kind="transport", repeatable=False)
    if isinstance(error, TimeoutError):
        return service.error("the connection to the upstream took too long", kind="transport")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return service.error(f"its certificate is not trusted; {TRUST}", kind="certificate")
    if isinstance(error, aiohttp.ClientResponseError):
        return service.error("the head of the upstream's answer is not HTTP", kind="transport")
    hint = f"; {TRUST}" if isinstance(error, aiohttp.ClientSSLError) else ""
    return service.error(f"cannot reach the upstream ({type(error).__name__}){hint}", kind="transport")


def unexpected(service: Service, status: int) -> UpstreamError:
    """The error for an answer that is neither a success nor a refusal."""
    return service.error(f"unexpected answer with status {status}", kind="bad_answer")


def refusal_of(
    profile: UpstreamProfile, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> UpstreamError:
    """The error for a non-success response."""
    error = error_of_body(body) or {"message": _unexplained(profile.label, status)}
    event = {"type": "error", "status": status, "error": error}
    result = profile.refusal(failure_of(event, now=now), headers.get("x-request-id"))
    if headers.get("x-should-retry", "").strip().lower() == "false":
        result = result.replaced(final=True)
    header = parse_retry_after(headers.get("retry-after"), now=now)
    if header is None:
        return result
    # the body knows more about a used-up limit: the header is for the next try
    wait = max(header, result.retry_after or 0.0) if result.kind == "usage_limit" else header
    return result.replaced(retry_after=wait)


def _unexplained(label: str, status: int) -> str:
    words = f"{label}: the upstream answered with status {status} and no explanation"
    return f"{words}; try again later, or look at the service's status page" if passes(status) else words


def release(response: aiohttp.ClientResponse) -> None:
    """Returns a connection to the pool, unless its peer switched to another protocol."""
    if response.status == SWITCHED:
        response.close()
    else:
        response.release()


def _ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
