"""Requests that are over, and files with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from harness import Notes

from proxy.observe.history.past_request import PastRequest, past_request
from proxy.observe.history.retention import HistoryBounds
from proxy.observe.history.schema import FILE_NAME, Names, connect, transaction
from proxy.observe.history.writer import HistoryWriter, Kept, WriterTimers, write_requests
from proxy.observe.monitor.snapshot import CacheView, RequestRow

#: A quarter of an hour begins here.
NOW = 1_800_000_000.0
ROW = RequestRow(
    id="r",
    endpoint="messages",
    status="completed",
    started_at=NOW - 5,
    elapsed=4.5,
    finished_at=NOW - 0.5,
    session="s1",
    agent="a1",
    number=3,
    project="shop",
    provider="p1/work",
    requested="claude-opus-5",
    resolved="gpt-5.5",
    effort="high",
    http=200,
    attempts=2,
    estimate=900,
    input_tokens=1000,
    output_tokens=120,
    cached_tokens=750,
    thinking_tokens=40,
    stop="tool_use",
    timings={"queue": 1.0, "connect": 99.0, "first_token": 900.0},
    cache=CacheView(0.75, 0.9, "the tools changed"),
    judge={"allow": 1},
    judge_input_tokens=10,
    judge_output_tokens=5,
    searches={"p1": 2},
    caller="anna",
    fallback="gpt-5.6: overloaded",
)
REQUEST = past_request(ROW)


def later(seconds: float, **changes: Any) -> PastRequest:
    """The request, ended some seconds after `NOW`, and otherwise changed."""
    return REQUEST._replace(**{"ended": round(1000 * (NOW + seconds)), **changes})


def history(folder: Path, requests: Iterable[PastRequest] = ()) -> Path:
    """A file with these requests."""
    path = folder / FILE_NAME
    db = connect(path)
    with transaction(db):
        write_requests(db, list(requests), Names(db))
    db.close()
    return path


def rows(path: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What a query finds in the file."""
    db = connect(path)
    try:
        return db.execute(query, values).fetchall()
    finally:
        db.close()


_ALL = HistoryBounds(0, 2**40)


class Written:
    """A writer of a file that writes at once, and what it said."""

    def __init__(self, path: Path, bounds: HistoryBounds = _ALL, **options: Any) -> None:
        self.path, self.log, self.told, self.used = path, Notes(), list[str](), list[Any]()
        timers = options.pop("timers", WriterTimers(0.0, 0.02, 3600.0))
        self.writer = HistoryWriter(
            path, self.log, bounds, timers=timers, tell=self.told.append, used=self.used.append, **options
        )

    def __enter__(self) -> Written:
        self.writer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.writer.close(5.0)

    def put(self, *kept: Kept) -> None:
        for one in kept:
            self.writer.put(one)


def ended(number: int, **changes: Any) -> RequestRow:
    """The row of request `number`."""
    return replace(ROW, id=f"r{number}", **changes)


def until(found: Callable[[], bool], most_s: float = 5.0) -> None:
    """Waits for another thread or process."""
    end = monotonic() + most_s
    while not found():
        assert monotonic() < end, "it did not happen"
        sleep(0.005)


def messages(log: Notes) -> Sequence[str]:
    return [msg for _level, _service, msg, _fields in log.records]
