"""The program's structured log: JSON lines in a file, failed answers in files of their own.

Writing a record costs the event loop one entry in a queue. One daemon thread redacts, encodes, writes files and
prints; it starts with the first record, because many runs of the command line never write one.
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from proxy.core.hiding.keys import Level
from proxy.core.hiding.secret import blanked
from proxy.core.hiding.texts import cut_text, log_text, without_parameters
from proxy.core.hiding.walk import redacted
from proxy.core.sse import dump_printable
from proxy.observe.log.storage import (
    KEPT_ERRORS,
    KEPT_LOGS,
    MAX_LOG_BYTES,
    MAX_RESPONSE_BYTES,
    Bounds,
    ErrorFiles,
    RotatingFile,
)
from proxy.observe.log.terminal import TERMINAL, TerminalCopy

#: Entries waiting for the thread; past it records are dropped and counted.
MAX_QUEUED = 4_096

#: Captures waiting, each up to MAX_RESPONSE_BYTES: a storm of failures may hold 2 MiB and no more.
MAX_PENDING_CAPTURES = 32

#: Records for one visit of the file.
BATCH = 256

#: How long the thread waits for more before it opens the file: a request writes five records within milliseconds. What
#: has come meanwhile is written in one go, while requests wait for the interpreter: with 50 ms the slowest of a hundred
#: took 5.2 ms, with 20 it takes 3.9.
LINGER_S = 0.02

#: Files are looked at for their age with the first record, and this long after the last time.
TIDY_EVERY_S = 3600.0

#: Room for the note that `cut_text` adds, so that a text cut once is not cut again.
NOTE_BYTES = 64


class _Record(NamedTuple):
    time_s: float
    level: str
    service: str
    msg: str
    fields: dict[str, Any]


class _TerminalLine(NamedTuple):
    line: str


class _Capture(NamedTuple):
    path: Path
    record: dict[str, Any]


class _Stop:
    """The last entry."""


_Item = _Record | _TerminalLine | _Capture | threading.Event | _Stop


class FileLog:
    """JSON lines in `<state_root>/proxy.log`, failed answers in `<state_root>/errors/`.

    `stderr` mirrors every record there instead of warnings and errors alone; `plain` shows sentences there in place of
    JSON; `verbose` keeps long texts whole; `captures` says whether failed answers are kept. `clock` gives seconds
    since 1970. `stream` replaces stderr. A log file of `file_bytes` is put aside; `kept` are the bounds of all of them,
    `kept_errors` those of failed answers.

    The fields of a record are read later, on the thread: hand over values that do not change afterwards.
    """

    def __init__(
        self,
        state_root: Path,
        *,
        stderr: bool = False,
        plain: bool = False,
        verbose: bool = False,
        captures: bool = True,
        clock: Callable[[], float] = time.time,
        stream: TextIO | None = None,
        file_bytes: int = MAX_LOG_BYTES,
        kept: Bounds = KEPT_LOGS,
        kept_errors: Bounds = KEPT_ERRORS,
    ) -> None:
        self._file = RotatingFile(state_root, clock, file_bytes, kept)
        self._errors = ErrorFiles(state_root, kept_errors) if captures else None
        self._tidied_s: float | None = None
        self._text = without_parameters if verbose else log_text
        self._clock = clock
        self._terminal = TerminalCopy(stream, everything=stderr, plain=plain)
        # A SimpleQueue because it may be entered again by the same thread: a finaliser that logs while the garbage
        # collector runs inside `put` would wait for itself in a Queue.
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._pending_captures = threading.BoundedSemaphore(MAX_PENDING_CAPTURES)
        self._lock = threading.RLock()
        self._dropped = 0
        self._failing = False
        self._thread: threading.Thread | None = None
        self._closed = False
        self._urgent = threading.Event()  # `flush` or `close` waits for the thread

    # On the event loop.

    def write(self, level: str, service: str, msg: str, **fields: Any) -> None:
        """One record; see `proxy.observe.lifecycle.Log`."""
        if not self._put(_Record(self._clock(), level, service, msg, fields)):
            self._drop(1)

    def tell(self, line: str) -> None:
        """Queues a line for the terminal alone; it is dropped when the queue is full."""
        self._put(_TerminalLine(f"{line}\n"))

    def capture_error(self, name: str, record: dict[str, Any]) -> str | None:
        """Hands the record to the thread. None when captures are off, the log is closed, too many wait, or the last
        lines could not be written: then no file could be either."""
        if self._errors is None or self._failing or not self._pending_captures.acquire(blocking=False):
            return None
        path = self._errors.path_for(self._clock(), name)
        if not self._put(_Capture(path, _without_long_text(record))):
            self._pending_captures.release()
            return None
        return str(path)

    @property
    def failing(self) -> bool:
        """Whether the last lines could not be written to the file."""
        return self._failing

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keeps stderr silent inside, whatever the level: a full-screen program owns the terminal. Nestable."""
        self._terminal.suppress(+1)
        try:
            yield
        finally:
            self._terminal.suppress(-1)

    def _put(self, item: _Item) -> bool:
        if self._closed or self._queue.qsize() >= MAX_QUEUED:
            return False
        self._queue.put(item)
        if self._thread is None:
            self._start()
        return True

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="proxy-log", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return  # no more threads just now; what waits in the queue is written by the next try
            self._thread = thread
            atexit.register(self.close)

    def _drop(self, count: int) -> None:
        with self._lock:
            self._dropped += count

    # At the end: these wait, so not on the event loop while requests run.

    def flush(self, timeout: float = 2.0) -> bool:
        """Waits until all that was written before is in the files; False after `timeout` seconds."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return self._queue.empty()
        done = threading.Event()
        self._queue.put(done)
        self._urgent.set()
        return done.wait(timeout)

    def close(self, timeout: float = 2.0) -> bool:
        """Writes what waits, for at most `timeout` seconds, and ends the thread; False if it did not end in time.

        Later records are dropped. A second call does no harm.
        """
        first, self._closed = not self._closed, True
        thread = self._thread
        if thread is None:
            return self._queue.empty()
        if first:
            atexit.unregister(self.close)
            self._queue.put(_Stop())
            self._urgent.set()
        thread.join(timeout)
        return not thread.is_alive()

    # On the writer thread.

    def _run(self) -> None:
        while True:
            batch = self._take()
            try:
                self._tidy()
                self._save_captures(batch)
                self._write_lines(batch)
            except Exception:  # nothing may end this thread
                self._drop(sum(isinstance(item, _Record) for item in batch))
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()
            if isinstance(batch[-1], _Stop):
                return

    def _tidy(self) -> None:
        now = self._clock()
        if self._tidied_s is None or abs(now - self._tidied_s) >= TIDY_EVERY_S:
            self._tidied_s = now
            self._file.tidy()
            if self._errors is not None:
                self._errors.tidy(now)

    def _take(self) -> list[_Item]:
        """Waits for one entry, a moment for more, and takes what is there: at most BATCH, nothing past the stop."""
        batch = [self._queue.get()]
        if not self._closed and self._queue.qsize() < BATCH:
            self._urgent.wait(LINGER_S)
        self._urgent.clear()
        while len(batch) < BATCH and not isinstance(batch[-1], _Stop):
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return batch

    def _save_captures(self, batch: list[_Item]) -> None:
        """Runs before the lines are written, so that a file named in a line exists."""
        for item in batch:
            if self._errors is None or not isinstance(item, _Capture):
                continue
            with suppress(Exception):  # a capture is a convenience
                self._errors.save(item.path, item.record)
            self._pending_captures.release()

    def _write_lines(self, batch: list[_Item]) -> None:
        self._terminal.show([(TERMINAL, item.line) for item in batch if isinstance(item, _TerminalLine)])
        lines = _blanked([(item.level, self._line(item)) for item in batch if isinstance(item, _Record)])
        records = len(lines)
        dropped = self._take_dropped()
        if dropped:
            lines.append(self._own_line("log_records_dropped", count=dropped))
        if not lines:
            return
        try:
            self._file.append("".join(line for _, line in lines).encode())
            self._failing = False
        except Exception as error:  # a full disk, a directory that went away
            self._drop(dropped + records)
            lines = lines[:records]
            if not self._failing:  # once, not with every record until there is room
                lines.append(self._own_line("log_write_failed", error=error))
            self._failing = True
        self._terminal.show(lines)

    def _own_line(self, msg: str, **fields: Any) -> tuple[str, str]:
        return "warn", blanked(self._line(_Record(self._clock(), "warn", "log", msg, fields)))

    def _line(self, record: _Record) -> str:
        """The record as JSON with its line end. What cannot be shown costs its fields, not its neighbours."""
        try:
            fields = redacted(record.fields, Level.LOG, self._text)
            head = _head(record.time_s, record.level, record.service, self._text(record.msg))
            return dump_printable({**head, "fields": fields} if fields else head) + "\n"
        except Exception as error:  # a foreign mapping that raises
            head = _head(self._clock(), "error", "log", "unprintable_record")
            return dump_printable({**head, "fields": {"error": type(error).__name__}}) + "\n"

    def _take_dropped(self) -> int:
        """The number of lost records once the queue is empty, else 0, so that one record reports all of them."""
        with self._lock:
            if not self._dropped or not self._queue.empty():
                return 0
            dropped, self._dropped = self._dropped, 0
            return dropped


def _head(time_s: float, level: str, service: str, msg: str) -> dict[str, Any]:
    return {"t": _stamp(int(time_s)), "level": level, "service": service, "msg": msg}


@lru_cache(maxsize=8)
def _stamp(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def _blanked(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Levels and lines, without the secrets of this process. All are searched at once, since there are some hundred
    forms to look for; a line has its end only at its end, and no secret goes over it."""
    whole = "".join(line for _, line in lines)
    if blanked(whole) is whole:
        return lines
    return [(level, blanked(line)) for level, line in lines]


def _without_long_text(record: dict[str, Any]) -> dict[str, Any]:
    """A copy that does not keep the rest of a long answer in memory while it waits."""
    response = record.get("response")
    if not isinstance(response, dict):
        return dict(record)
    text = response.get("text")
    if not isinstance(text, str) or len(text) <= MAX_RESPONSE_BYTES:
        return dict(record)
    kept = cut_text(text, MAX_RESPONSE_BYTES - NOTE_BYTES)
    return {**record, "response": {**response, "text": kept}}
