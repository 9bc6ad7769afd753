"""Returns the answer of the native Responses route: the answer as it arrives, or its whole response object.

An observer reads along for counts and failures; it never changes or delays a byte. Anything that may be an error's text
leaves without our secrets, and failures without pictures of the request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from proxy.core.bodies.decode import load_any_json
from proxy.core.error_bodies import error_event
from proxy.core.hiding.secret import blanked, blanked_bytes
from proxy.core.hiding.texts import shown_bytes
from proxy.core.messages import MAX_REPLY_CHARS
from proxy.core.responses_events import ENDS, UNREADABLE, is_last, responses_failure, responses_usage
from proxy.core.sizes import LARGE_BYTES
from proxy.core.sse import FrameTooLarge, SSEDecoder, TooManyLines
from proxy.core.tokens.usage import Usage
from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.off_loop import in_thread_if
from proxy.providers.contract import NativeEnd
from proxy.providers.p1_codex.failures import PROFILE, client_error, upstream_error
from proxy.providers.upstream.aiohttp_internals import PIECE_BYTES
from proxy.providers.upstream.transport import HttpTransport, OpenAnswer

#: Headers of an upstream answer that a client may see. Cookies, account and routing headers are not passed on.
PASSED_HEADERS = frozenset(
    {"content-type", "cache-control", "retry-after", "x-request-id", "openai-processing-ms", "openai-version"}
)
PASSED_PREFIX = "x-ratelimit-"

_LAST_NAMES = frozenset(name.encode() for name in ENDS)
#: One search for all names: a read may bring thousands of frames.
_LAST_NAME = re.compile(b"|".join(map(re.escape, sorted(_LAST_NAMES))))
#: How a frame of a failure begins; in the text of a model the quotes would be escaped.
_ERROR_TYPES = (b'"type":"error"', b'"type": "error"')
_ERROR_HEADS = (b"event: error", b"event:error", b"response.failed", b'"error":{', b'"error": {')
_ERROR_MARKS = (*_ERROR_HEADS, *_ERROR_TYPES)
#: A failure is held until it is whole, up to this size: a secret in it may come in two pieces.
MAX_HELD = 256 * 1024
#: Data of a frame without an event.
_NO_EVENT = (b"", b"[DONE]")
_HOLE = "unreadable answer: an event is not a JSON object, and the last one does not repeat the answer"
_FRAME_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")
_FRAME_END = re.compile(rb"(\n\n|\r\r|\r\n\r\n)")
#: Within so many characters a frame without an `event:` line names its type.
_HEAD = 120


def passed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer that are passed on; unprintable ones are left out."""
    return {
        name: blanked(value)
        for key, value in headers.items()
        if ((name := key.lower()) in PASSED_HEADERS or name.startswith(PASSED_PREFIX)) and value.isprintable()
    }


class RelayObserver:
    """Reads an answer as it passes and fills `end` from its last event."""

    def __init__(self, end: NativeEnd, now: float) -> None:
        self._decoder: SSEDecoder | None = SSEDecoder()
        self._now = now
        self._end = end
        self.ended = False

    async def feed(self, chunk: bytes) -> None:
        if self._decoder is None or self.ended:
            return
        try:
            frames = self._decoder.feed(chunk)
        except TooManyLines:
            self._decoder = SSEDecoder()
            return
        except FrameTooLarge:  # too large for us to read; the client still gets it
            self._decoder = None
            return
        for name, data in frames:
            if name in _LAST_NAMES or (not name and _may_be_last(data)):
                await self._last(name, data)

    async def _last(self, name: bytes, data: bytes) -> None:
        event = await _read(name, data)
        failure = None if event is None else responses_failure(event, now=self._now)
        if event is None or not (failure or is_last(event)):
            return
        self.ended = True
        if failure is not None:
            self._end.failure = client_error(upstream_error(failure))
            return
        response = event.get("response")
        self._end.usage = responses_usage(response.get("usage")) if isinstance(response, Mapping) else None

    @property
    def missed(self) -> bool:
        """Whether no last event passed; False when reading stopped early."""
        return not self.ended and self._decoder is not None


def _event_of(name: bytes, data: bytes) -> dict[str, Any] | None:
    """A frame as an event, None when it is not one."""
    if name == b"error":
        return error_event(data, load_any_json)
    try:
        event = load_any_json(data)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _read(name: bytes, data: bytes) -> Awaitable[dict[str, Any] | None]:
    return in_thread_if(len(data) > LARGE_BYTES, partial(_event_of, name, data))


def _may_be_last(data: bytes) -> bool:
    return _LAST_NAME.search(data, 0, _HEAD) is not None


async def whole(body: bytes) -> AsyncGenerator[bytes, None]:
    """Yields a body that is already known."""
    yield body


async def relayed(transport: HttpTransport, opened: OpenAnswer, observer: RelayObserver) -> AsyncGenerator[bytes, None]:
    """The body as it arrives. Raises UpstreamError when it breaks off, or ends, before its last event."""
    failure, further = bytearray(), False  # a failure's held part; whether its beginning was sent
    try:
        while chunk := await _next_chunk(transport, opened, ended=observer.ended):
            if failure or further or any(mark in chunk for mark in _ERROR_MARKS):
                failure += chunk
                whole = failure.endswith(_FRAME_ENDS)
                if whole or len(failure) > MAX_HELD:
                    yield await _shown_later(bytes(failure), further)
                    failure.clear()
                    further = not whole
            else:
                yield chunk
            await observer.feed(chunk)
    except UpstreamError:
        if failure:
            yield await _shown_later(bytes(failure), further)
        raise
    if failure:
        yield await _shown_later(bytes(failure), further)
    if observer.missed:
        raise cut_answer()


async def _shown_later(frames: bytes, further: bool) -> bytes:
    """Calls `_shown`, in a thread for long frames, of which there may be thousands."""
    return await in_thread_if(len(frames) > PIECE_BYTES, partial(_shown, frames, further))


def _shown(frames: bytes, further: bool) -> bytes:
    """The frames without secrets; a failure's also without encoded data, which only other frames have for the client.
    `further`: they begin within a failure."""
    first, *others = _FRAME_END.split(blanked_bytes(frames))
    rest = (shown_bytes(frame) if _is_failure(frame) else frame for frame in others)
    return (shown_bytes(first) if further or _is_failure(first) else first) + b"".join(rest)


def _is_failure(frame: bytes) -> bool:
    head = frame[:_HEAD]
    return any(mark in head for mark in _ERROR_HEADS) or any(mark in frame for mark in _ERROR_TYPES)


async def _next_chunk(transport: HttpTransport, opened: OpenAnswer, *, ended: bool) -> bytes:
    try:
        async with asyncio.timeout(transport.timers.after_end if ended else None):
            return await transport.read(opened)
    except (TimeoutError, UpstreamError):
        if not ended:
            raise
        return b""


def cut_answer() -> UpstreamError:
    words = "the upstream cut the answer: it ended before its last event"
    return PROFILE.error(words, kind="transport", code=PROTOCOL_ERROR)


async def aggregated(transport: HttpTransport, opened: OpenAnswer, *, now: float) -> tuple[dict[str, Any], Usage]:
    """The response object that a stream builds, and its counters. Raises UpstreamError.

    The backend may leave `output` of the last event empty; the items then come from the events before it, none of which
    may be missing."""
    missed = False
    items: list[tuple[float, dict[str, Any]]] = []
    async with aclosing(_events(transport, opened)) as events:
        async for event in events:
            missed = missed or event is UNREADABLE
            if event.get("type") == "response.output_item.done" and isinstance(event.get("item"), dict):
                index = event.get("output_index")
                items.append((index if isinstance(index, int) else float("inf"), event["item"]))
            failure = responses_failure(event, now=now)
            if failure is not None:
                raise client_error(upstream_error(failure))
            if is_last(event) and isinstance(event.get("response"), dict):
                answer = event["response"]
                if missed and not answer.get("output"):
                    raise PROFILE.error(_HOLE, kind="transport", code=PROTOCOL_ERROR)
                return _with_items(answer, items), responses_usage(answer.get("usage"))
    raise cut_answer()


def unstreamed(events: list[dict[str, Any]], end: NativeEnd, now: float) -> dict[str, Any]:
    """The response object of an answer that came as JSON although a stream was requested; `end` gets its counters.
    Raises UpstreamError for an error, whatever its status was."""
    failure = responses_failure(events[-1], now=now)
    if failure is not None:
        raise client_error(upstream_error(failure))
    answer: dict[str, Any] = events[-1]["response"]
    end.usage = responses_usage(answer.get("usage"))
    return answer


async def _events(transport: HttpTransport, opened: OpenAnswer) -> AsyncGenerator[dict[str, Any], None]:
    """The events; UNREADABLE in place of a frame that is not one."""
    decoder, size = SSEDecoder(), 0
    while chunk := await transport.read(opened):
        size += len(chunk)
        try:
            frames = decoder.feed(chunk)
            if size > MAX_REPLY_CHARS:
                raise FrameTooLarge(f"the answer passed {MAX_REPLY_CHARS} bytes")
        except FrameTooLarge as error:
            raise PROFILE.error(str(error), kind="bad_answer") from None
        for name, data in frames:
            if data.strip() not in _NO_EVENT:
                yield await _read(name, data) or UNREADABLE


def _with_items(answer: dict[str, Any], items: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    ordered = [item for _, item in sorted(items, key=lambda pair: pair[0])]
    output = answer.get("output")
    if not isinstance(output, list) or not output:
        return {**answer, "output": ordered}
    ids = {position: item.get("id") for position, item in enumerate(ordered)}
    filled = [
        {**item, "id": ids[position]} if isinstance(item, dict) and not item.get("id") and ids.get(position) else item
        for position, item in enumerate(output)
    ]
    return {**answer, "output": filled}
