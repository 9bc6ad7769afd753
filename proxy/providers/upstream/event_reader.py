"""What was read of a stream, as events: bounded batches of them, and long ones parsed beside the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from proxy.core.bodies.decode import load_long_json
from proxy.core.error_bodies import error_event
from proxy.core.reducer import DONE
from proxy.core.sse import FrameTooLarge, SSEDecoder, load_json, mended_text
from proxy.errors import UpstreamError
from proxy.providers.contract import LARGE_BYTES
from proxy.providers.upstream.text_runs import Frame, TextRuns

#: So many events are acted on before others get their turn: one read may bring thousands.
TOGETHER = 500

Batch = list[dict[str, Any]]
#: Events that were read, and what is wrong with what stands behind them.
Read = tuple[Batch, UpstreamError | None]


class EventReader:
    """The events of one body.

    runs        how events that are pieces of one text are put together
    lenient     what is no text is mended, and the end of the body ends a frame
    unreadable  the error behind what is none
    """

    def __init__(self, runs: TextRuns, *, lenient: bool, unreadable: Callable[..., UpstreamError]) -> None:
        self._decoder = SSEDecoder()
        self._runs = runs
        self._lenient = lenient
        self._unreadable = unreadable

    async def read(self, chunk: bytes) -> Iterable[Read]:
        """What this piece completes, b"" at the end of the body. Others are to get their turn between two of these."""
        if self._decoder.held + len(chunk) <= LARGE_BYTES:
            return self._batches(chunk, load_json)
        # an event that is long may be in there
        return await asyncio.to_thread(lambda: list(self._batches(chunk, _load)))

    def _batches(self, chunk: bytes, load: Callable[[str], Any]) -> Iterator[Read]:
        try:
            frames = self._decoder.end() if self._lenient and not chunk else self._decoder.feed(chunk)
        except FrameTooLarge as error:
            yield [], self._unreadable(f"unreadable answer: {error}", repeatable=False)
            return
        for start in range(0, len(frames), TOGETHER):
            yield self._batch(frames[start : start + TOGETHER] if len(frames) > TOGETHER else frames, load)

    def _batch(self, frames: list[Frame], load: Callable[[str], Any]) -> Read:
        batch: Batch = []
        for name, data in self._runs.joined(frames):
            bare = data.strip()
            if not bare:
                continue
            if name == b"error":
                batch.append(error_event(data, loads))
                continue
            if bare == b"[DONE]":
                batch.append(DONE)
                continue
            try:
                event = load(mended_text(data) if self._lenient else data.decode())
            except (ValueError, RecursionError):
                return batch, self._unreadable("unreadable answer: an event is not JSON")
            if not isinstance(event, dict):  # what was to stand here is missing
                return batch, self._unreadable("unreadable answer: an event is not a JSON object")
            batch.append(event)
        return batch, None


def loads(data: bytes) -> Any:
    """The value of the data of an event. A long one is for a thread: others go on meanwhile. Raises ValueError and
    RecursionError."""
    return load_long_json(data) if len(data) > LARGE_BYTES else load_json(data.decode())


def _load(text: str) -> Any:
    return load_long_json(text.encode()) if len(text) > LARGE_BYTES else load_json(text)
