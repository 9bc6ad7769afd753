"""The folder of one capture, and how much may be written to all of them.

Blocking. Folders are made 0700 and files 0600, from the first moment; nothing that exists is written to or followed.
Each file is written in one call, but the raw text of a stream, which grows.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from proxy.observe.capture.layout import DIRECTORY_MODE, EVENTS, FILE_MODE, TRAFFIC, artifact_name, event_name
from proxy.observe.capture.reading.folder import captures_in, remove

#: Bytes that the smallest file takes of the quota, and the step of larger ones: a block of the file system.
BLOCK_BYTES = 4096

#: When there is no room left, files are counted again after this many seconds: some may have been removed.
RECOUNT_S = 30.0

#: Before that, they are counted again when we have used this share of the room since the last count, but not for a few
#: only: other processes may write to the same folder.
_RECOUNTS = 16
_MIN_RECOUNT_BYTES = 1024 * 1024
_MIN_RECOUNT_FILES = 64

#: Captures are looked at for their age with the first one, and this long after the last time.
TIDY_EVERY_S = 3600.0

#: Folders below `traffic` that are looked at; ours are two deep, and events.
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """Bytes and files of all captures and of one; and the seconds that one is kept, 0 for ever."""

    total_bytes: int
    total_files: int
    bytes: int
    files: int
    age_s: int = 0


class CaptureQuota:
    """The remaining bytes and files."""

    def __init__(self, max_bytes: int, max_files: int) -> None:
        self._max = (max_bytes, max_files)
        self.bytes = self.files = 0

    def fits(self, size: int, files: int) -> bool:
        return self.bytes + size <= self._max[0] and self.files + files <= self._max[1]

    def take(self, size: int, files: int) -> None:
        self.bytes += size
        self.files += files


class TrafficFolder:
    """`<state>/traffic`, and the room in it. `full` is called once when there is none left, with what was counted.

    clock  seconds that only grow
    """

    def __init__(
        self, root: Path, limits: CaptureLimits, clock: Callable[[], float], full: Callable[[int, int], None]
    ) -> None:
        self.path = root / TRAFFIC
        self.limits = limits
        self._room = CaptureQuota(limits.total_bytes, limits.total_files)
        self._own = CaptureQuota(  # since the last count
            max(limits.total_bytes // _RECOUNTS, _MIN_RECOUNT_BYTES),
            max(limits.total_files // _RECOUNTS, _MIN_RECOUNT_FILES),
        )
        #: Files of a block that have room, and are still to be written.
        self.reserved = 0
        self._clock = clock
        self._full = full
        self._warned = False
        self._counted_s: float | None = None
        self._tidied_s: float | None = None

    def take(self, size: int, files: int) -> bool:
        """Whether there was room."""
        if self._counted_s is None or not self._own.fits(size, files):
            self._count()
        if not self._room.fits(size, files) and self._clock() - (self._counted_s or 0.0) >= RECOUNT_S:
            self._count()
        if not self._room.fits(size, files):
            if not self._warned:
                self._warned = True
                self._full(self._room.bytes, self._room.files)
            return False
        self._room.take(size, files)
        self._own.take(size, files)
        return True

    def remove_old(self, now_s: float) -> None:
        """Removes captures that began too long ago, at most every `TIDY_EVERY_S`. `now_s`: since 1970."""
        if not self.limits.age_s or (self._tidied_s is not None and abs(now_s - self._tidied_s) < TIDY_EVERY_S):
            return
        self._tidied_s = now_s
        try:
            remove(one for one in captures_in(self.path) if one.begun_s < now_s - self.limits.age_s)
        except OSError:
            pass  # what cannot be removed counts on
        self._counted_s = None

    def _count(self) -> None:
        self._counted_s = self._clock()
        size, files = used(self.path)
        self._room.bytes, self._room.files = size + self.reserved * BLOCK_BYTES, files + self.reserved
        self._own.bytes = self._own.files = 0


def used(folder: Path, depth: int = 0) -> tuple[int, int]:
    """Bytes and files of a folder and what is in it, each file as it counts; no link is followed."""
    size = files = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    size += counted(entry.stat(follow_symlinks=False).st_size)
                    files += 1
                elif depth < _MAX_DEPTH:
                    inner = used(Path(entry.path), depth + 1)
                    size, files = size + inner[0], files + inner[1]
    except OSError:
        pass  # not there yet, or cleared meanwhile
    return size, files


def counted(size: int) -> int:
    """The bytes of a file as the quota counts them: whole blocks, one at least."""
    return max(1, -(-size // BLOCK_BYTES)) * BLOCK_BYTES


class CaptureFiles:
    """The files of one capture. Raises OSError where one cannot be made, FileExistsError for what is there already.

    Room is kept for the summary, so that every capture can say how it ended.
    """

    def __init__(self, traffic: TrafficFolder, folder: Path) -> None:
        self._traffic = traffic
        self._room = CaptureQuota(traffic.limits.bytes, traffic.limits.files)
        self._path = folder
        self._artifacts = self._events = 0
        self._reserved = False
        self._secrets: set[bytes] = set()
        #: artifacts and events that were left out for want of room
        self.left_out = 0

    def make(self) -> bool:
        """Makes the folder and keeps room for the summary. False when there is none."""
        if not self._take(BLOCK_BYTES, 1):
            return False
        _make_private(self._traffic.path)
        _make_private(self._path.parent)
        self._path.mkdir(mode=DIRECTORY_MODE)
        self._reserved = True
        self._traffic.reserved += 1
        return True

    def hide(self, secrets: Iterable[str]) -> None:
        """Keeps these texts out of all further files: an upstream may quote a key that it refuses."""
        self._secrets |= {secret.encode("utf-8", "backslashreplace") for secret in secrets}

    def write(self, station: str, data: bytes, extension: str = "json", *, reserved: bool = False) -> None:
        """Writes one artifact, if there is room for it."""
        data = self._without_secrets(data)
        if reserved:
            self.release()
        if not (reserved and len(data) <= BLOCK_BYTES) and not self._take(counted(len(data)), 1):
            self.left_out += 1
            return
        self._artifacts += 1
        _write(self._path / artifact_name(self._artifacts, station, extension), data)

    def write_event(self, station: str, data: bytes) -> None:
        """Writes one event, if there is room for it."""
        data = self._without_secrets(data)
        if not self._take(counted(len(data)), 1):
            self.left_out += 1
            return
        if not self._events:
            (self._path / EVENTS).mkdir(mode=DIRECTORY_MODE)
        self._events += 1
        _write(self._path / event_name(self._events, station), data)

    def grow(self, station: str, extension: str) -> GrowingFile | None:
        """Opens an artifact that is written piece by piece; None when there is no room."""
        if not self._take(BLOCK_BYTES, 1):
            self.left_out += 1
            return None
        self._artifacts += 1
        path = self._path / artifact_name(self._artifacts, station, extension)
        return GrowingFile(path, lambda size: self._take(size, 0), self._without_secrets)

    def _without_secrets(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, b"[redacted len=%d]" % len(secret))
        return data

    def release(self) -> None:
        """Releases the room kept for the summary."""
        self._traffic.reserved -= self._reserved
        self._reserved = False

    def _take(self, size: int, files: int) -> bool:
        if not self._room.fits(size, files) or not self._traffic.take(size, files):
            return False
        self._room.take(size, files)
        return True


class GrowingFile:
    """A file that grows by pieces. `take` asks for more room, in whole blocks; `clean` redacts a piece."""

    def __init__(self, path: Path, take: Callable[[int], bool], clean: Callable[[bytes], bytes]) -> None:
        self._file = os.fdopen(_open(path), "wb")
        self._take = take
        self._clean = clean
        self._size = 0
        self._paid = BLOCK_BYTES

    def add(self, data: bytes) -> bool:
        """Whether there was room for the piece."""
        data = self._clean(data)
        more = counted(self._size + len(data)) - self._paid
        if more > 0 and not self._take(more):
            return False
        self._paid += max(0, more)
        self._size += len(data)
        self._file.write(data)
        return True

    def close(self) -> None:
        self._file.close()


def _make_private(folder: Path) -> None:
    """Makes the folder, or an existing one, private to its owner. Raises OSError where something else has the name: a
    link would lead elsewhere."""
    try:
        folder.mkdir(mode=DIRECTORY_MODE)
    except FileNotFoundError:
        for above in [*reversed(folder.parents)]:
            above.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        folder.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    except FileExistsError:
        mode = folder.lstat().st_mode
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(f"{folder.name} is not a folder") from None
        if mode & 0o077:
            folder.chmod(DIRECTORY_MODE)


def _write(path: Path, data: bytes) -> None:
    file = _open(path)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
    finally:
        os.close(file)


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, FILE_MODE)
