"""Writes the history, on a thread of its own: the event loop hands over what happened and never waits for the disk."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path

from proxy.observe.history.allowance_samples import Sample, SampledWindows
from proxy.observe.history.caller_use import CallerUse, read_use, write_use
from proxy.observe.history.past_request import COLUMNS, NAMED, PastRequest, past_request
from proxy.observe.history.problems import NewerHistory, problem_of, reason_of
from proxy.observe.history.retention import HistoryBounds, remove_old
from proxy.observe.history.schema import Names, check_version, connect, damage_told, transaction
from proxy.observe.history.sums import add_up, insert, write_sums
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

_REQUESTS = f"requests ({', '.join(COLUMNS)})"
_SAMPLES = 'allowances (account, "window", "limit", at, used, resets)'
_NEWER = 'ON CONFLICT (account, "window", "limit", at) DO UPDATE SET used = excluded.used, resets = excluded.resets'


@dataclass(frozen=True, slots=True)
class WriterTimers:
    """Seconds between two writes, until another try, and between two removals of what is old."""

    write: float = WRITE_EVERY_S
    again: float = TRY_AGAIN_S
    tidy: float = TIDY_EVERY_S


_TIMERS = WriterTimers()


class HistoryWriter:
    """Keeps requests, samples of allowances, and what callers used, in the file.

    used  told what all callers used on a day, in all processes, after it changed
    tell  told once when the file cannot be written, with the reason, and once when it can be again, with ""

    Both are told on the thread.
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
        self._problem = False

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
        file = _File(self.path, self._bounds, self._wall)
        batch: Sequence[Kept] = ()
        tidied, ended = -math.inf, False
        while not ended:
            self._wake.wait(self._timers.tidy)
            ended = self._ending.wait(self._timers.write)  # for more of them
            self._wake.clear()
            batch = self._unwritten(file, [*batch, *self._taken(MAX_WAITING - len(batch))])
            now = time.monotonic()
            if not self._problem and now - tidied >= self._timers.tidy:
                tidied = now
                self._tidy(file)
            if self._problem:
                self._ending.wait(self._timers.again)
            if self._problem or self._waiting:
                self._wake.set()
        if batch or self._waiting:
            self._log.write("warn", "history", "history_lost", count=len(batch) + len(self._waiting))
        file.close()

    def _tidy(self, file: _File) -> None:
        try:
            self._done(file.tidy, file)
        except Exception as error:  # a fault of ours must not end the thread
            self._log.write("error", "history", "internal_error", error=type(error).__name__)

    def _taken(self, most: int) -> list[Kept]:
        waiting = self._waiting
        return [waiting.popleft() for _ in range(min(most, len(waiting)))]

    def _unwritten(self, file: _File, batch: Sequence[Kept]) -> Sequence[Kept]:
        """Writes a batch; returns what is still to be written."""
        try:
            return () if self._done(partial(self._write, file, batch), file) else batch
        except Exception as error:  # one of them cannot be written, which is a fault of ours
            left, dropped = self._one_by_one(file, batch)
            self._log.write("error", "history", "internal_error", error=type(error).__name__, dropped=dropped)
            return left

    def _one_by_one(self, file: _File, batch: Sequence[Kept]) -> tuple[Sequence[Kept], int]:
        """Writes each by itself; returns what is still to be written, and the number of those that never can be."""
        left, dropped = [], 0
        for one in batch:
            try:
                if not self._done(partial(self._write, file, [one]), file):
                    left.append(one)
            except Exception:
                dropped += 1
        return left, dropped

    def _write(self, file: _File, batch: Sequence[Kept]) -> None:
        used = file.write(batch)
        if used:
            self._used(used)

    def _done(self, work: Callable[[], None], file: _File) -> bool:
        """Works with the file; whether it could be used. Tells of the first failure, and of its end."""
        try:
            work()
        except _FAULTS_OF_OURS:
            raise
        except (sqlite3.Error, OSError, NewerHistory, UnicodeDecodeError) as error:
            file.close()
            if not self._problem:
                self._log.write("warn", "history", "history_not_kept", file=str(self.path), reason=reason_of(error))
                self._tell(problem_of(error))
            self._problem = True
            return False
        if self._problem:
            self._problem = False
            self._log.write("info", "history", "history_kept_again", dropped=self._dropped)
            self._tell("")
        return True


#: Errors of SQLite that a value causes, and not the file.
_FAULTS_OF_OURS = (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError)


Places = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _File:
    """The open file; closed after a failure, and opened again by the next write, as after it was deleted or replaced.

    state    the number of commits of other processes, `PRAGMA data_version`
    places   device and inode of the file and of its -wal, after the last write
    orphans  connections to deleted files. They stay open: the end of one deletes a -wal by its name, which may be that
             of the new file
    """

    path: Path
    bounds: HistoryBounds
    wall: Callable[[], float]
    _db: sqlite3.Connection | None = None
    _names: Names | None = None
    _state: int = 0
    _places: Places = ()
    _orphans: list[sqlite3.Connection] = field(default_factory=list)

    def write(self, batch: Sequence[Kept]) -> Mapping[str, CallerUse]:
        """Writes a batch in one transaction. Returns what callers used on its newest day, {} if it is not news."""
        db, names = self._opened()
        if not batch:
            return {}
        requests = [past_request(one) for one in batch if isinstance(one, RequestRow)]
        samples = [one for one in batch if isinstance(one, Sample)]
        try:
            with transaction(db):
                self._look_for_others(db, names)
                write_requests(db, requests, names)
                write_samples(db, samples, names)
                day = write_use(db, (one for one in batch if isinstance(one, CallerUse)))
                used = {} if day is None else read_use(db, day)
        except BaseException:
            names.forget()  # those of this transaction do not exist
            raise
        self._places = _places_of(self.path)
        return used

    def tidy(self) -> None:
        """Removes what is old."""
        db, names = self._opened()
        with damage_told():
            remove_old(db, self.bounds, self.wall())
        names.forget()

    def _opened(self) -> tuple[sqlite3.Connection, Names]:
        if self._db is not None and self._places and self._places != _places_of(self.path):
            self._orphans.append(self._db)  # what is written to a deleted file is lost
            self._db = None
        if self._db is None or self._names is None:
            self._db = connect(self.path)
            self._names = Names(self._db)
        return self._db, self._names

    def _look_for_others(self, db: sqlite3.Connection, names: Names) -> None:
        """Forgets what another process may have changed since the last write: it may have removed texts, or be of a
        newer version. Raises NewerHistory."""
        state = int(db.execute("PRAGMA data_version").fetchone()[0])
        if state != self._state:
            self._state = state
            check_version(db)
            names.forget()

    def close(self) -> None:
        db, self._db, self._names, self._places = self._db, None, None, ()
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                db.close()


def _places_of(path: Path) -> Places:
    found = []
    for one in (path, path.with_name(f"{path.name}-wal")):
        with contextlib.suppress(FileNotFoundError):
            info = one.stat()
            found.append((info.st_dev, info.st_ino))
    return tuple(found)


#: The places of the texts in a request.
_NAMED = [place for place, name in enumerate(COLUMNS) if name in NAMED]
_named = itemgetter(*_NAMED)


def write_requests(db: sqlite3.Connection, requests: Sequence[PastRequest], names: Names) -> None:
    """Writes requests and adds them to the sums, within a transaction."""
    names.learn(text for one in requests for text in _named(one) if text is not None)
    rows = []
    for one in requests:
        row = [*one]
        for place in _NAMED:
            row[place] = None if row[place] is None else names.number(str(row[place]))
        rows.append(row)
    insert(db, _REQUESTS, rows)
    write_sums(db, add_up(requests), names)


def write_samples(db: sqlite3.Connection, samples: Sequence[Sample], names: Names) -> None:
    """Writes samples of allowances, within a transaction."""
    number = names.number
    rows = [(number(one.account), number(one.window), number(one.limit), *one[3:]) for one in samples]
    insert(db, _SAMPLES, rows, _NEWER)
