"""Writes the history, on a thread of its own: the event loop hands over what happened and never waits for the disk."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxy.observe.history.allowance_samples import Sample, SampledWindows
from proxy.observe.history.caller_use import CallerUse, read_use, write_use
from proxy.observe.history.past_request import COLUMNS, NAMED, PastRequest, past_request
from proxy.observe.history.retention import HistoryBounds, remove_old
from proxy.observe.history.schema import Names, NewerHistory, connect, transaction
from proxy.observe.history.sums import add_up, write_sums
from proxy.observe.lifecycle import Log
from proxy.observe.monitor.snapshot import AllowanceRow, RequestRow

#: What is handed over to be written.
Kept = RequestRow | Sample | CallerUse
#: Those that wait to be written. More are dropped, and counted.
MAX_WAITING = 20_000
#: Seconds between two writes: a process that is killed loses no more than this.
WRITE_EVERY_S = 0.5
#: Seconds until a file that could not be written is tried again.
TRY_AGAIN_S = 10.0
#: Seconds between two removals of what is old.
TIDY_EVERY_S = 3600.0

_INSERT = f"INSERT INTO requests ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_SAMPLE = 'INSERT OR REPLACE INTO allowances (account, "window", "limit", at, used, resets) VALUES (?, ?, ?, ?, ?, ?)'


@dataclass(frozen=True, slots=True)
class WriterTimers:
    """Seconds between two writes, until another try, and between two removals of what is old."""

    write: float = WRITE_EVERY_S
    again: float = TRY_AGAIN_S
    tidy: float = TIDY_EVERY_S


_TIMERS = WriterTimers()


class HistoryWriter:
    """Keeps requests, samples of allowances, and what callers used, in the file.

    used  told what all callers used on a day, in all processes, after it changed: on the thread
    tell  told once when the file cannot be written, with the reason and what to do, and once when it can be again, as
          "": on the thread
    """

    def __init__(
        self,
        path: Path,
        log: Log,
        bounds: HistoryBounds,
        *,
        timers: WriterTimers = _TIMERS,
        wall: Callable[[], float] = time.time,
        used: Callable[[Mapping[str, CallerUse]], None] = lambda _used: None,
        tell: Callable[[str], None] = lambda _problem: None,
    ) -> None:
        self.path = path
        self._log, self._bounds, self._timers, self._wall = log, bounds, timers, wall
        self._used, self._tell = used, tell
        self._waiting: deque[Kept] = deque()
        self._samples = SampledWindows()
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._dropped = 0
        self._problem = ""

    # On the event loop.

    def start(self) -> None:
        """Opens the file, so that one that cannot be used is reported at once, and begins to write."""
        self._wake.set()
        self._thread = threading.Thread(target=self._run, name="proxy-history", daemon=True)
        self._thread.start()

    def reported(self, rows: Sequence[AllowanceRow]) -> None:
        """Keeps what changed of the windows of an allowance."""
        for sample in self._samples.changed(rows):
            self.put(sample)

    def put(self, one: Kept) -> None:
        """Keeps one thing more."""
        if len(self._waiting) >= MAX_WAITING:
            self._dropped += 1
            return
        self._waiting.append(one)
        if not self._wake.is_set():
            self._wake.set()

    def close(self, timeout: float = 2.0) -> None:
        """Writes what waits, and ends the thread. Blocks, for at most `timeout` seconds."""
        self._ending.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout)

    # On the thread.

    def _run(self) -> None:
        file = _File(self.path, self._bounds, self._wall, self._timers.tidy)
        batch: list[Kept] = []
        while True:
            self._wake.wait(self._timers.tidy)
            ended = self._ending.wait(self._timers.write)
            self._wake.clear()
            batch += self._taken(MAX_WAITING - len(batch))
            written = self._tried(file, batch)
            if written:
                batch = []
            if ended:
                file.close()
                return
            if not written:
                self._ending.wait(self._timers.again)
                self._wake.set()

    def _taken(self, most: int) -> list[Kept]:
        waiting = self._waiting
        return [waiting.popleft() for _ in range(min(most, len(waiting)))]

    def _tried(self, file: _File, batch: Sequence[Kept]) -> bool:
        """Writes a batch; whether it is in the file."""
        try:
            used = file.write(batch)
        except (sqlite3.Error, OSError, NewerHistory) as error:
            file.close()
            self._failed(problem_of(error))
            return False
        except Exception as error:  # a fault of ours; the same batch would fail again
            file.close()
            self._log.write("error", "history", "internal_error", error=type(error).__name__)
            return True
        if used:
            self._used(used)
        if self._problem:
            self._problem = ""
            self._log.write("info", "history", "history_kept_again", dropped=self._dropped)
            self._tell("")
        return True

    def _failed(self, problem: str) -> None:
        if not self._problem:
            self._log.write("warn", "history", "history_not_kept", file=str(self.path), reason=problem)
            self._tell(problem)
        self._problem = problem


def problem_of(error: Exception) -> str:
    """Why the file cannot be used."""
    if isinstance(error, NewerHistory):
        return f"a newer version of this program wrote it: {error}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return f"it is damaged ({error})"
    return str(error)


@dataclass(slots=True)
class _File:
    """The open file; closed after a failure, and opened again by the next write."""

    path: Path
    bounds: HistoryBounds
    wall: Callable[[], float]
    tidy_s: float
    _db: sqlite3.Connection | None = None
    _names: Names | None = None
    _place: tuple[int, int] | None = None
    _state: int = 0
    _tidied: float = 0.0

    def write(self, batch: Sequence[Kept]) -> Mapping[str, CallerUse]:
        """Writes a batch in one transaction, and removes what is old, now and then. Returns what callers used on its
        newest day, {} if it is not news."""
        if self._db is not None and self._place != _place_of(self.path):
            self.close()  # somebody removed it: what is written to it would be lost
        if self._db is None or self._names is None:
            self._db = connect(self.path)
            self._names, self._place = Names(self._db), _place_of(self.path)
        used = self._write(self._db, self._names, batch) if batch else {}
        now = self.wall()
        if abs(now - self._tidied) >= self.tidy_s:
            self._tidied = now
            remove_old(self._db, self.bounds, now)
        return used

    def _write(self, db: sqlite3.Connection, names: Names, batch: Sequence[Kept]) -> Mapping[str, CallerUse]:
        requests = [past_request(one) for one in batch if isinstance(one, RequestRow)]
        samples = [one for one in batch if isinstance(one, Sample)]
        try:
            with transaction(db):
                state = int(db.execute("PRAGMA data_version").fetchone()[0])
                if state != self._state:  # another process wrote, and may have removed texts
                    self._state = state
                    names.forget()
                write_requests(db, requests, names)
                write_samples(db, samples, names)
                day = write_use(db, (one for one in batch if isinstance(one, CallerUse)))
                return {} if day is None else read_use(db, day)
        except BaseException:
            names.forget()  # those of this transaction do not exist
            raise

    def close(self) -> None:
        db, self._db, self._names = self._db, None, None
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                db.close()


def _place_of(path: Path) -> tuple[int, int] | None:
    """Which file it is, by device and number, whatever its name; None for none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def write_requests(db: sqlite3.Connection, requests: Sequence[PastRequest], names: Names) -> None:
    """Writes requests and adds them to the sums, within a transaction."""
    number = names.number
    flags = [name in NAMED for name in COLUMNS]
    db.executemany(
        _INSERT,
        [
            [
                number(str(value)) if named and value is not None else value
                for value, named in zip(one, flags, strict=True)
            ]
            for one in requests
        ],
    )
    write_sums(db, add_up(requests), names)


def write_samples(db: sqlite3.Connection, samples: Sequence[Sample], names: Names) -> None:
    """Writes samples of allowances, within a transaction."""
    number = names.number
    rows = [(number(one.account), number(one.window), number(one.limit), *one[3:]) for one in samples]
    db.executemany(_SAMPLE, rows)
