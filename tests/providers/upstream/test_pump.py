"""What the pump passes on where its bytes arrive, and what it leaves to the reader of the body."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterable
from typing import Any

import pytest
from samples import rows

from proxy.core.sizes import LARGE_BYTES
from proxy.core.sse import MAX_FRAME_LINES
from proxy.errors import UpstreamError
from proxy.providers.upstream import event_reader
from proxy.providers.upstream.event_reader import TOGETHER, Batch, EventReader, Pump
from proxy.providers.upstream.text_runs import CHAT_RUNS


def unreadable(what: str, *, repeatable: bool = True) -> UpstreamError:
    return UpstreamError(what, kind="transport")


def said(*events: Any) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


class Taker:
    """A pump, and the batches that were taken."""

    def __init__(self, *, takes: bool = True) -> None:
        self.got: list[Batch] = []
        self.takes = takes
        self.reader = EventReader(CHAT_RUNS, lenient=False, unreadable=unreadable)
        self.pump = Pump(self.reader, lambda event: "last" in event)
        self.pump.to = self.take

    def take(self, batch: Batch) -> bool:
        self.got.append(batch)
        return self.takes


async def rest(taker: Taker, chunk: bytes) -> list[tuple[Batch, str | None]]:
    """What the reader of the body makes of a piece that was not taken."""
    reads: Iterable[Any] = taker.pump.left() or await taker.reader.read(chunk)
    return [(batch, error and error.message) for batch, error in reads]


A, B, LAST = {"a": 1}, {"b": 2}, {"last": True}
MANY = [{"n": number} for number in range(TOGETHER + 1)]
HUGE = {"text": "x" * LARGE_BYTES}

TAKEN: list[tuple[list[bytes], list[Batch], int]] = [
    ([said(A)], [[A]], 1),
    ([said(A, B), said(B)], [[A, B], [B]], 3),
    ([said(A)[:5], said(A)[5:]], [[A]], 1),
    ([said({"ü": "€"})[:12], said({"ü": "€"})[12:]], [[{"ü": "€"}]], 1),
    ([said(A)[:-1], b"\n"], [[A]], 1),
    ([b"data: {}\r", b"\n\r", b"\n"], [[{}]], 1),
    ([b": a comment\n\n", b":\n", b"\n\n", b"event: x\n\n", b"data:\n\n"], [], 0),
    ([said(*MANY[:TOGETHER])], [MANY[:TOGETHER]], TOGETHER),
]


@rows("pieces, expected, events", TAKEN)
def test_what_is_plain_is_passed_on(pieces: list[bytes], expected: list[Batch], events: int) -> None:
    taker = Taker()
    assert all(map(taker.pump.take, pieces))
    assert (taker.got, taker.pump.events, taker.pump.left()) == (expected, events, None)


LEFT: list[tuple[bytes, list[tuple[Batch, str | None]]]] = [
    (said(LAST), [([LAST], None)]),
    (said(A, LAST), [([A, LAST], None)]),
    (b"data: {oops\n\n", [([], "unreadable answer: an event is not JSON")]),
    (said(A) + b"data: [1]\n\n" + said(B), [([A], "unreadable answer: an event is not a JSON object")]),
    (said(*MANY), [(MANY[:TOGETHER], None), (MANY[TOGETHER:], None)]),
    (said(HUGE), [([HUGE], None)]),
]


@rows("piece, expected", LEFT)
async def test_what_is_not_plain_is_left_whole(piece: bytes, expected: list[tuple[Batch, str | None]]) -> None:
    """And what comes behind it is taken again."""
    taker = Taker()
    assert taker.pump.take(said(A))
    assert not taker.pump.take(piece)
    assert await rest(taker, piece) == expected
    assert taker.got == [[A]] and taker.pump.events == 1
    assert taker.pump.left() is None and taker.pump.take(said(B)) and taker.got == [[A], [B]]


async def test_a_frame_that_grows_for_ever_is_left() -> None:
    taker, line = Taker(), b"data: x\n"
    lines = MAX_FRAME_LINES + 1
    assert not all(taker.pump.take(line * 1000) for _ in range(lines // 1000 + 1))
    assert "passed the limit" in str((await rest(taker, line * 1000))[-1][1])


async def test_a_batch_that_is_refused_is_left_and_not_counted() -> None:
    taker = Taker(takes=False)
    assert not taker.pump.take(said(A, B))
    assert await rest(taker, said(A, B)) == [([A, B], None)]
    assert taker.got == [[A, B]] and taker.pump.events == 0


async def test_while_nobody_takes_nothing_is_read() -> None:
    taker = Taker()
    taker.pump.to = None
    assert not taker.pump.take(said(A))
    assert await rest(taker, said(A)) == [([A], None)]


async def test_what_breaks_is_told_to_the_reader_of_the_body_once() -> None:
    """A protocol must not raise: its connection would be closed without a reason."""
    taker = Taker()

    def broken(batch: Batch) -> bool:
        raise KeyError("a bug")

    taker.pump.to = broken
    assert not taker.pump.take(said(A))
    with pytest.raises(KeyError, match="a bug"):
        taker.pump.left()
    assert taker.pump.left() is None


def test_of_one_read_no_more_is_parsed_at_once_than_runs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of the body lets other tasks run between two batches: 32 KiB of `data:{}` take 24 ms."""
    parsed, load = list[str](), event_reader.load_json
    monkeypatch.setattr(event_reader, "load_json", lambda text: parsed.append(text) or load(text))  # type: ignore[func-returns-value]
    pump = Pump(EventReader(CHAT_RUNS, lenient=False, unreadable=unreadable), lambda _event: False)
    pump.to = lambda _batch: True
    assert not pump.take(b"data:{}\n\n" * 3600)
    assert len(parsed) <= 2 * TOGETHER  # the second batch shows that there is one


class _Bug(Exception):
    pass


def test_what_broke_a_batch_goes_without_the_collector() -> None:
    """A frame that raises an error and holds it is a cycle, which keeps the frames of writer and connection."""

    def broken(_batch: object) -> bool:
        raise _Bug

    def run() -> None:
        pump = Pump(EventReader(CHAT_RUNS, lenient=False, unreadable=unreadable), lambda _event: False)
        pump.to = broken
        assert not pump.take(b"data: {}\n\n")
        with contextlib.suppress(_Bug):
            pump.left()

    gc.collect()
    gc.disable()
    try:
        run()
        assert not [one for one in gc.get_objects() if isinstance(one, _Bug)]
    finally:
        gc.enable()
