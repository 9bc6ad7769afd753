"""The files of the log: `RotatingFile` for records, `ErrorFiles` for failed answers.

Blocking, called from the writer thread only; OSError goes to the caller.

Files are opened for each batch and closed again: the directory may be removed or the disk swapped while we run, and
the next batch simply tries again.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proxy.core.secret import blanked
from proxy.core.sse import dump_printable
from proxy.observe.log.redact import cut_text, redact, safe_name

#: A larger log file is put aside before the next write.
MAX_LOG_BYTES = 20 * 1024 * 1024

#: Error captures kept; the oldest go first.
MAX_ERROR_FILES = 128

#: Of a failed answer this much is kept, as text or as JSON; also the longest single text in a capture.
MAX_RESPONSE_BYTES = 64 * 1024

_ERROR_FILE = re.compile(r"(\d+)-.*\.json")


class RotatingFile:
    """`<directory>/proxy.log`, put aside as `proxy.<unix-ms>` when it has grown too large."""

    def __init__(self, directory: Path, clock: Callable[[], float], max_bytes: int = MAX_LOG_BYTES) -> None:
        self.path = directory / "proxy.log"
        self._clock = clock
        self._max_bytes = max_bytes
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

    def _rotate(self) -> None:
        try:
            info = self.path.stat()
            if not stat.S_ISREG(info.st_mode) or info.st_size <= self._max_bytes:
                return
            stamp = unix_ms(self._clock())
            while (aside := self.path.with_name(f"proxy.{stamp}")).exists():
                stamp += 1
            self.path.rename(aside)
        except OSError:
            pass  # not there yet, or cannot be moved: then it grows, which beats losing records


class ErrorFiles:
    """`<directory>/errors/<unix-ms>-<name>.json`, one for each failed answer, the newest `max_files`."""

    def __init__(self, directory: Path, max_files: int = MAX_ERROR_FILES) -> None:
        self.directory = directory / "errors"
        self._max_files = max_files

    def path_for(self, time_s: float, name: str) -> Path:
        """Where a capture of this moment will be."""
        return self.directory / f"{unix_ms(time_s)}-{safe_name(name)}.json"

    def save(self, path: Path, record: dict[str, Any]) -> None:
        """Redacts and writes. A file that could not be finished is removed."""
        text = blanked(dump_printable(_bounded(redact(record, max_text=MAX_RESPONSE_BYTES)), indent=2))
        self._make_room()
        file = open_private(path, os.O_EXCL)
        try:
            with os.fdopen(file, "wb") as out:
                out.write(text.encode() + b"\n")
        except OSError:
            path.unlink(missing_ok=True)
            raise

    def _make_room(self) -> None:
        """Only files with names of ours count and go."""
        try:
            ours = [file.name for file in self.directory.iterdir() if _ERROR_FILE.fullmatch(file.name)]
        except FileNotFoundError:
            return
        ours.sort(key=lambda name: (int(name.split("-", 1)[0]), name))
        for name in ours[: max(0, len(ours) - self._max_files + 1)]:
            (self.directory / name).unlink(missing_ok=True)


def _bounded(record: dict[str, Any]) -> dict[str, Any]:
    """The record with a JSON answer that is too large turned into the beginning of its text."""
    response = record.get("response")
    if response is None or (isinstance(response, dict) and isinstance(response.get("text"), str)):
        return record  # a text was cut by the redaction
    text = dump_printable(response)
    if len(text.encode()) <= MAX_RESPONSE_BYTES:
        return record
    return {**record, "response": {"text": cut_text(text, MAX_RESPONSE_BYTES)}}


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
