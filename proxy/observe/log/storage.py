"""The files of the log: `RotatingFile` for records, `ErrorFiles` for failed answers.

Blocking, called from the writer thread only; OSError goes to the caller.

Files are opened for each batch and closed again: the directory may be removed or the disk swapped while we run, and
the next batch simply tries again.
"""

from __future__ import annotations

import calendar
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from proxy.core.hiding.keys import Level
from proxy.core.hiding.secret import blanked
from proxy.core.hiding.texts import cut_text, log_text
from proxy.core.hiding.walk import redacted
from proxy.core.sse import dump_printable

#: A larger log file is put aside before the next write.
MAX_LOG_BYTES = 20 * 1024 * 1024

#: Bytes kept of a failed answer, as text or as JSON; also the longest single text in a capture.
MAX_RESPONSE_BYTES = 64 * 1024

#: One file-name part: half of what common file systems allow, so a prefix and a suffix always fit.
MAX_NAME = 160
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9._-]")
_ERROR_FILE = re.compile(r"(\d+)-.*\.json")
_ASIDE = re.compile(r"proxy\.(\d+)")
#: How a record begins: its time.
_FIRST = re.compile(rb'\{"t":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"')


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most files of a kind, bytes of all of them, and seconds that one is kept; 0 seconds: for ever."""

    files: int
    bytes: int
    age_s: float = 0.0

    def surplus(self, found: Iterable[tuple[int, str, int]], now_s: float) -> list[str]:
        """The names of files to remove, from (unix-ms, name, bytes): those that are too old, then the oldest."""
        gone, files, size = [], 0, 0
        for stamp, name, more in sorted(found, reverse=True):
            files, size = files + 1, size + more
            too_old = self.age_s > 0 and now_s - stamp / 1000 > self.age_s
            if too_old or files > self.files or size > self.bytes:
                gone.append(name)
        return gone


DAY_S = 24 * 3600.0
KEPT_LOGS = Bounds(files=10_000, bytes=200 * 1024 * 1024, age_s=30 * DAY_S)
KEPT_ERRORS = Bounds(files=128, bytes=32 * 1024 * 1024, age_s=30 * DAY_S)


def _remove_surplus(directory: Path, name: re.Pattern[str], bounds: Bounds, now_s: float) -> None:
    """Counts and removes only regular files with names of ours, which begin or end with their time."""
    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                match = name.fullmatch(entry.name)
                if match and entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # another process removed it
                        found.append((int(match[1]), entry.name, entry.stat(follow_symlinks=False).st_size))
    except FileNotFoundError:
        return
    for one in bounds.surplus(found, now_s):
        with suppress(OSError):  # one that cannot be removed keeps no other
            (directory / one).unlink()


class RotatingFile:
    """`<directory>/proxy.log`, put aside as `proxy.<unix-ms>` when it has grown too large or is too old.

    kept  the bounds of all log files; the current one counts with its full size
    """

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float],
        max_bytes: int = MAX_LOG_BYTES,
        kept: Bounds = KEPT_LOGS,
    ) -> None:
        self.path = directory / "proxy.log"
        self._clock = clock
        self._max_bytes = max_bytes
        self._kept = kept
        self._aside = Bounds(kept.files, max(0, kept.bytes - max_bytes), kept.age_s)
        self._torn = False

    def append(self, data: bytes) -> None:
        """Adds whole lines. After a write that broke off, the next one starts on a line of its own."""
        self._rotate()
        if self._torn:
            data = b"\n" + data
        with os.fdopen(open_private(self.path, os.O_APPEND), "ab") as file:
            info = os.fstat(file.fileno())
            if stat.S_ISREG(info.st_mode) and info.st_mode & 0o077 and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)  # left by a program that relied on the umask
            self._torn = True
            file.write(data)
            file.flush()
            self._torn = False

    def tidy(self) -> None:
        """Rotates a file that began too long ago, and removes rotated ones that are too old or too many."""
        with suppress(OSError):
            begun = self._begun_s()
            if begun is not None and 0 < self._kept.age_s < self._clock() - begun:
                self._put_aside()
        with suppress(OSError):
            _remove_surplus(self.path.parent, _ASIDE, self._aside, self._clock())

    def _begun_s(self) -> float | None:
        """The time of the first record; None when the file does not say. Raises OSError."""
        if not self.path.is_file():  # a pipe would wait for its writer
            return None
        with self.path.open("rb") as file:
            found = _FIRST.match(file.read(64))
        try:
            return None if found is None else calendar.timegm(time.strptime(found[1].decode(), "%Y-%m-%dT%H:%M:%SZ"))
        except ValueError:  # no such day
            return None

    def _rotate(self) -> None:
        try:
            info = self.path.stat()
            if stat.S_ISREG(info.st_mode) and info.st_size > self._max_bytes:
                self._put_aside()
        except OSError:
            pass  # not there yet, or cannot be moved: then it grows, which beats losing records

    def _put_aside(self) -> None:
        aside = self._free_name()
        try:
            self.path.replace(aside)
        except OSError:  # another process was quicker
            aside.unlink(missing_ok=True)
            raise
        _remove_surplus(self.path.parent, _ASIDE, self._aside, self._clock())

    def _free_name(self) -> Path:
        """Creates an empty file, so that no other process can take its name and overwrite ours."""
        stamp = unix_ms(self._clock())
        while True:
            aside = self.path.with_name(f"proxy.{stamp}")
            try:
                os.close(open_private(aside, os.O_EXCL))
            except FileExistsError:
                stamp += 1
            else:
                return aside


class ErrorFiles:
    """`<directory>/errors/<unix-ms>-<name>.json`, one for each failed answer, within bounds."""

    def __init__(self, directory: Path, kept: Bounds = KEPT_ERRORS) -> None:
        self.directory = directory / "errors"
        self._kept = kept

    def path_for(self, time_s: float, name: str) -> Path:
        """The path of a capture made at this moment."""
        return self.directory / f"{unix_ms(time_s)}-{safe_name(name)}.json"

    def save(self, path: Path, record: dict[str, Any]) -> None:
        """Redacts and writes. A file that could not be finished is removed."""
        shown = redacted(record, Level.LOG, partial(log_text, most=MAX_RESPONSE_BYTES))
        text = blanked(dump_printable(_bounded(shown), indent=2))
        data = text.encode() + b"\n"
        room = Bounds(self._kept.files - 1, max(0, self._kept.bytes - len(data)), self._kept.age_s)
        _remove_surplus(self.directory, _ERROR_FILE, room, int(path.name.split("-", 1)[0]) / 1000)
        file = open_private(path, os.O_EXCL)
        try:
            with os.fdopen(file, "wb") as out:
                out.write(data)
        except OSError:
            path.unlink(missing_ok=True)
            raise

    def tidy(self, now_s: float) -> None:
        """Removes what is too old."""
        try:
            _remove_surplus(self.directory, _ERROR_FILE, self._kept, now_s)
        except OSError:
            pass


def _bounded(record: dict[str, Any]) -> dict[str, Any]:
    """The record, with a JSON answer that is too large replaced by the beginning of its text."""
    response = record.get("response")
    if response is None or (isinstance(response, dict) and isinstance(response.get("text"), str)):
        return record  # a text was cut by the redaction
    text = dump_printable(response)
    if len(text.encode()) <= MAX_RESPONSE_BYTES:
        return record
    return {**record, "response": {"text": cut_text(text, MAX_RESPONSE_BYTES)}}


def safe_name(part: str) -> str:
    """A file-name part from any text, such as a session id a client made up.

    Never empty, never `.` or `..`, so it cannot lead out of its directory.

    >>> safe_name("a/b"), safe_name(".."), safe_name("")
    ('a_b', '_..', 'unknown')
    """
    name = _UNSAFE_IN_NAME.sub("_", part[:MAX_NAME])
    if not name:
        return "unknown"
    return f"_{name}"[:MAX_NAME] if not name.strip(".") else name


def open_private(path: Path, flags: int) -> int:
    """A descriptor for writing a file only its owner can read, in a directory only its owner can enter."""
    flags |= os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        for directory in [*reversed(path.parents)]:
            directory.mkdir(mode=0o700, exist_ok=True)  # `parents=True` would give parents the mode of the umask
        return os.open(path, flags, 0o600)


def unix_ms(time_s: float) -> int:
    """Seconds since 1970 as whole milliseconds."""
    return int(time_s * 1000)
