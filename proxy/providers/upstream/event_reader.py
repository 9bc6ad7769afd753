"""Reads a body as events: in bounded batches, long ones parsed in a thread, and given up when it pauses for too
long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

import aiohttp

from proxy.core.bodies.decode import load_any_json
from proxy.core.error_bodies import error_event
from proxy.core.reducer import DONE
from proxy.core.sizes import LARGE_BYTES
from proxy.core.sse import FrameTooLarge, SSEDecoder, load_json, mended_text
from proxy.errors import UpstreamError
from proxy.providers.upstream.aiohttp_internals import TakePiece, read_past
from proxy.providers.upstream.text_runs import TextRuns

#: Events handled before other tasks run: one read may bring thousands.
TOGETHER = 500

Batch = list[dict[str, Any]]
#: Takes a batch at once, where its bytes arrive. False if the batch has to be yielded.
TakeBatch = Callable[[Batch], bool]
#: Yields batches. Whoever reads them may send a function back that takes further ones, while it waits for the next.
Batches = AsyncGenerator[Batch, TakeBatch | None]
#: Events, and what is wrong with the data after them.
Read = tuple[Batch, UpstreamError | None]


async def next_batch(batches: Batches, take: TakeBatch | None) -> Batch | None:
    """The next batch that `take` does not take, None at the end. Not for the first one."""
    try:
        return await batches.asend(take)
    except StopAsyncIteration:
        return None


class EventReader:
    """Reads the events of one body.

    runs        joins events that are pieces of one text
    lenient     repairs invalid text, and lets the end of the body end a frame
    unreadable  the error for what is not an event
    """

    def __init__(self, runs: TextRuns, *, lenient: bool, unreadable: Callable[..., UpstreamError]) -> None:
        self._decoder = SSEDecoder(shorten=runs.joined)
        self._lenient = lenient
        self._unreadable = unreadable

    async def read(self, chunk: bytes) -> Iterable[Read]:
        """The events that this piece completes, b"" at the end of the body. Other tasks should run between two
        batches."""
        reads = self.read_now(chunk)
        if reads is not None:
            return reads
        return await asyncio.to_thread(lambda: list(self._batches(chunk, load_any_json)))

    def read_now(self, chunk: bytes) -> Iterable[Read] | None:
        """Reads as `read` does. Returns None, and does nothing, for a piece that may complete a long event."""
        return self._batches(chunk, load_json) if self._decoder.held + len(chunk) <= LARGE_BYTES else None

    def _batches(self, chunk: bytes, load: Callable[[str], Any]) -> Iterator[Read]:
        try:
            frames = self._decoder.end() if self._lenient and not chunk else self._decoder.feed(chunk)
        except FrameTooLarge as error:
            yield [], self._unreadable(f"unreadable answer: {error}", repeatable=False)
            return
        for start in range(0, len(frames), TOGETHER):
            yield self._batch(frames[start : start + TOGETHER] if len(frames) > TOGETHER else frames, load)

    def _batch(self, frames: list[tuple[bytes, bytes]], load: Callable[[str], Any]) -> Read:
        batch: Batch = []
        for name, data in frames:
            bare = data.strip()
            if not bare:
                continue
            if name == b"error":
                batch.append(error_event(data, load_any_json))
                continue
            if bare == b"[DONE]":
                batch.append(DONE)
                continue
            try:
                event = load(mended_text(data) if self._lenient else data.decode())
            except (ValueError, RecursionError):
                return batch, self._unreadable("unreadable answer: an event is not JSON")
            if not isinstance(event, dict):  # an expected event is missing
                return batch, self._unreadable("unreadable answer: an event is not a JSON object")
            batch.append(event)
        return batch, None


class Pump:
    """Passes the events of one body on where its bytes arrive, without a task for them. Whatever is not a plain piece
    of the answer it leaves to the reader of the body, who waits meanwhile.

    to       takes batches, None while nobody does
    events   how many were taken
    """

    def __init__(self, reader: EventReader, is_last: Callable[[dict[str, Any]], bool]) -> None:
        self._reader = reader
        self._is_last = is_last
        self._left: Iterable[Read] | None = None
        self._error: Exception | None = None
        self.to: TakeBatch | None = None
        self.events = 0

    def take(self, chunk: bytes) -> bool:
        """Passes on what a piece of the body completes. False if `left` has it, or nothing was done."""
        try:
            return self._take(chunk)
        except Exception as error:
            self._error = error
            return False

    def _take(self, chunk: bytes) -> bool:
        reads = None if self.to is None else self._reader.read_now(chunk)
        if self.to is None or reads is None:
            return False
        further = iter(reads)
        found = [*islice(further, 2)]
        if not found:
            return True
        batch, unreadable = found[0]
        plain = len(found) == 1 and unreadable is None and not any(map(self._is_last, batch))
        if plain and (not batch or self.to(batch)):
            self.events += len(batch)
            return True
        self._left = chain(found, further)
        return False

    def left(self) -> Iterable[Read] | None:
        """What was read of a piece that was not taken, None if it was not read. Raises what `take` met."""
        error, self._error = self._error, None
        left, self._left = self._left, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # its traceback holds this frame, until garbage is collected
        return left


class PauseTimer:
    """Gives up a body that pauses for too long: its reader gets a TimeoutError. The timer is set again when it
    runs out and not with each piece, of which there may be thousands a second."""

    def __init__(self, body: aiohttp.StreamReader, limit_s: float) -> None:
        self._body = body
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer = self._loop.call_later(limit_s, self._look)

    async def read(self, take: TakePiece | None = None) -> bytes:
        """The next piece, b"" at the end. Raises TimeoutError, aiohttp.ClientError, OSError.

        take  takes pieces where they arrive, so that they are not returned; must not raise
        """
        self._since = self._loop.time()
        try:
            return await (self._body.readany() if take is None else read_past(self._body, partial(self._taken, take)))
        finally:
            self._since = None

    def _taken(self, take: TakePiece, piece: bytes) -> bool:
        self._since = self._loop.time()
        return take(piece)

    def close(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        until = (now if self._since is None else self._since) + self._limit_s
        if now < until:
            self._timer = self._loop.call_at(until, self._look)
        else:
            self._body.set_exception(TimeoutError())
