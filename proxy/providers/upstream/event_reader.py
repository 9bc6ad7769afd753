"""Reads a body as events: in bounded batches, long ones parsed in a thread, and given up when it pauses for too long.

Neighbouring events that differ only by a piece of text become one before they are parsed: one read may bring hundreds
of them, and reducers would put their texts together again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import aiohttp

from proxy.core.blocks import TEXT_DELTA, THINKING_DELTA
from proxy.core.bodies.decode import load_any_json
from proxy.core.error_bodies import error_event
from proxy.core.reducer import DONE
from proxy.core.sizes import LARGE_BYTES
from proxy.core.sse import FrameTooLarge, SSEDecoder, load_json, mended_text
from proxy.errors import UpstreamError
from proxy.providers.upstream.aiohttp_internals import TakePiece, read_past

#: As returned by `SSEDecoder`: the name of the event, and its data.
Frame = tuple[bytes, bytes]

#: Longer data are not one of the pieces of text that services send.
MAX_DATA_BYTES = 16 * 1024

# Escapes of code points are excluded: half of a surrogate pair would become whole.
_INSIDE = rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt])++'
_LITERAL = re.compile(_INSIDE)
#: Members that differ in each event of a Responses stream. No reducer reads them.
_COUNTED = re.compile(rb'"sequence_number":\s*\d+|"obfuscation":\s*"[^"\\]*"')
_SAME = b'"sequence_number":0'


class TextRuns:
    """Joins the events of a wire that are pieces of one text.

    members  the names of the members that hold the piece
    text_of  the text of an event that says nothing else, "" for another: repeating its other members must not change
             what it means
    counted  whether each event has its own number
    """

    def __init__(self, members: str, text_of: Callable[[dict[str, Any]], str], *, counted: bool = False) -> None:
        self._piece = re.compile(rb'"(?:%b)"\s*:\s*"(%b)"' % (members.encode(), _INSIDE))
        self._text_of = text_of
        self._counted = counted

    def joined(self, frames: list[Frame]) -> list[Frame]:
        """The frames, with each run replaced by one."""
        last = len(frames) - 1
        if last < 1:
            return frames
        alike = self._alike(frames)
        out: list[Frame] = []
        start = 0
        while start < last:
            if alike[start][0] != alike[start + 1][0]:  # two kinds of event
                out.append(frames[start])
                start += 1
                continue
            pieces, before, behind = self._run(alike, start)
            whole = self._whole(pieces, before, behind) if len(pieces) > 1 else None
            end = start + max(1, len(pieces))
            out += frames[start:end] if whole is None else [(frames[start][0], whole)]
            start = end
        return out + frames[start:]

    def _alike(self, frames: list[Frame]) -> list[Frame]:
        """The frames without an event's own members, and without data too long for a piece."""
        if not self._counted:
            return [(name, data if len(data) <= MAX_DATA_BYTES else b"") for name, data in frames]
        count = _COUNTED.sub
        return [(name, count(_SAME, data) if len(data) <= MAX_DATA_BYTES else b"") for name, data in frames]

    def _run(self, frames: list[Frame], start: int) -> tuple[list[bytes], bytes, bytes]:
        """The pieces of like frames from `start` on, and what comes before and after each."""
        name, first = frames[start]
        found = self._piece.search(first)
        if found is None:
            return [], b"", b""
        before, behind = first[: found.start(1)], first[found.end(1) :]
        pieces = [found[1]]
        for other, data in islice(frames, start + 1, None):
            piece = data[len(before) : -len(behind)]
            if other != name or not _LITERAL.fullmatch(piece) or data != before + piece + behind:
                break
            pieces.append(piece)
        return pieces, before, behind

    def _whole(self, pieces: list[bytes], before: bytes, behind: bytes) -> bytes | None:
        """The data of one frame that replaces several; None when its meaning would differ."""
        inside = b"".join(pieces)
        data = before + inside + behind
        try:
            for piece in pieces:
                piece.isascii() or piece.decode()  # fails for a character that was cut
            text, event = load_json(f'"{inside.decode()}"'), load_json(data.decode())
        except (ValueError, RecursionError):
            return None
        return data if isinstance(event, dict) and self._text_of(event) == text else None


_CHAT_MEMBERS = ("content", "reasoning_content", "reasoning")


def _chat_text(chunk: dict[str, Any]) -> str:
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict or chunk.get("error"):
        return ""
    delta = choices[0].get("delta")
    if type(delta) is not dict or delta.get("tool_calls") or delta.get("refusal"):
        return ""
    texts = [text for member in _CHAT_MEMBERS if (text := delta.get(member))]
    return texts[0] if len(texts) == 1 and type(texts[0]) is str else ""


_RESPONSES_PIECES = frozenset(
    {"response.output_text.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
)


def _responses_text(event: dict[str, Any]) -> str:
    text = event.get("delta")
    return text if event.get("type") in _RESPONSES_PIECES and type(text) is str else ""


_MESSAGES_PIECES = {delta.name: delta.carries for delta in (TEXT_DELTA, THINKING_DELTA)}


def _messages_text(event: dict[str, Any]) -> str:
    delta = event.get("delta")
    if event.get("type") != "content_block_delta" or type(delta) is not dict:
        return ""
    kind = delta.get("type")
    text = delta.get(_MESSAGES_PIECES.get(kind, "")) if type(kind) is str else ""
    return text if type(text) is str else ""


CHAT_RUNS = TextRuns("|".join(_CHAT_MEMBERS), _chat_text)
RESPONSES_RUNS = TextRuns("delta", _responses_text, counted=True)
MESSAGES_RUNS = TextRuns("|".join(_MESSAGES_PIECES.values()), _messages_text)


#: Events handled before other tasks run: one read may bring thousands.
TOGETHER = 500

Batch = list[dict[str, Any]]
#: Takes a batch at once, where its bytes arrive. False, and nothing was done, if it has to be yielded.
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
        self._decoder = SSEDecoder()
        self._runs = runs
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
        """As `read`; None, and nothing was done, for a piece that may complete a long event."""
        return self._batches(chunk, load_json) if self._decoder.held + len(chunk) <= LARGE_BYTES else None

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
    """Passes the events of one body on where its bytes arrive: no task runs for them, which is half of what a small one
    costs. Whatever is not a plain piece of the answer it leaves to the reader of the body, who waits meanwhile.

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
        found = [*reads]
        if not found:
            return True
        batch, unreadable = found[0]
        plain = len(found) == 1 and unreadable is None and not any(map(self._is_last, batch))
        if plain and (not batch or self.to(batch)):
            self.events += len(batch)
            return True
        self._left = found
        return False

    def left(self) -> Iterable[Read] | None:
        """What was read of a piece that was not taken, None if it was not read. Raises what `take` met."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        left, self._left = self._left, None
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
