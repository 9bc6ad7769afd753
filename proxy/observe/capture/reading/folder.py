"""The folder of captures: which there are, the artifacts of each, and their removal.

Only folders and regular files with our names are seen, and no link is followed: session names come from clients, and
other things may have been put there. Such things stay when captures are removed.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.observe.capture.layout import EVENTS, EXTENSIONS

_SESSION = re.compile(r"[A-Za-z0-9._-]{1,160}")
_CAPTURE = re.compile(r"(?P<number>\d{6,})-(?P<provider>[A-Za-z0-9_]+)-(?P<id>[A-Za-z0-9._-]{1,160})")
_ARTIFACT = re.compile(rf"\d{{3,}}-(?P<station>\d{{3}})-(?P<what>[A-Za-z0-9_-]+)\.(?:{'|'.join(EXTENSIONS)})")

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

#: Digits of a station's number.
NUMBER = 3

#: A body may have 64 MiB, and grows when it is indented.
MAX_READ_BYTES = 256 * 1024 * 1024


class Unreadable(Exception):
    """An artifact that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a capture.

    name     below the capture: `003-020-upstream-request.json`, `events/000001-040-upstream-event.json`
    station  `020`
    what     `upstream-request`
    """

    path: Path
    name: str
    station: str
    what: str
    size: int
    modified_s: float

    @property
    def is_event(self) -> bool:
        return self.name.startswith(EVENTS + "/")

    def read(self) -> bytes:
        """Raises Unreadable."""
        try:
            with os.fdopen(os.open(self.path, _READ), "rb") as file:
                data = file.read(MAX_READ_BYTES + 1)
        except OSError as error:
            raise Unreadable(f"{self.name}: {error.strerror}") from None
        if len(data) > MAX_READ_BYTES:
            raise Unreadable(f"{self.name}: more than {MAX_READ_BYTES} bytes")
        return data

    def json(self) -> Any:
        """Raises Unreadable."""
        try:
            return json.loads(self.read())
        except ValueError:
            raise Unreadable(f"{self.name}: not JSON") from None
        except RecursionError:
            raise Unreadable(f"{self.name}: not JSON that was captured, it is nested too deeply") from None

    def object(self) -> Mapping[str, Any]:
        """Raises Unreadable."""
        value = self.json()
        if not isinstance(value, dict):
            raise Unreadable(f"{self.name}: not a JSON object")
        return value


@dataclass(frozen=True, slots=True)
class CaptureFolder:
    """One request.

    session    the name of its folder
    number     in its session, 0 without one
    """

    path: Path
    session: str
    number: int
    provider: str
    request_id: str

    def artifacts(self) -> list[Artifact]:
        """All artifacts in the order in which they were written, events last."""
        return [*_artifacts(self.path, ""), *_artifacts(self.path / EVENTS, EVENTS + "/")]

    def last(self, station: str) -> Artifact | None:
        """The newest artifact of a station (`020-upstream-request`, of which the number counts), None without one."""
        found = [one for one in _artifacts(self.path, "") if one.station == station[:NUMBER]]
        return found[-1] if found else None

    def read_object(self, station: str) -> Mapping[str, Any]:
        """The JSON object in a station's newest artifact, empty when there is none that can be read."""
        try:
            return found.object() if (found := self.last(station)) else {}
        except Unreadable:
            return {}

    @property
    def begun_s(self) -> float:
        """The time of the first artifact, since 1970; of the folder while it is empty, 0.0 when it is gone."""
        found = next(_artifacts(self.path, ""), None)
        try:
            return found.modified_s if found else self.path.stat(follow_symlinks=False).st_mtime
        except OSError:
            return 0.0


def captures_in(root: Path) -> list[CaptureFolder]:
    """All captures, oldest first."""
    sessions = (session for session in _folders(root) if _SESSION.fullmatch(session.name))
    return _sorted(capture for session in sessions for capture in _captures(session))


def captures_of(session: Path) -> list[CaptureFolder]:
    """The captures of one session, oldest first."""
    return _sorted(_captures(session))


def _captures(session: Path) -> Iterator[CaptureFolder]:
    return (capture for folder in _folders(session) if (capture := capture_at(folder)) is not None)


def _sorted(captures: Iterable[CaptureFolder]) -> list[CaptureFolder]:
    found = [*captures]
    times = {capture.path: capture.begun_s for capture in found}
    return sorted(found, key=lambda one: (times[one.path], one.session, one.number, one.request_id))


def capture_at(folder: Path) -> CaptureFolder | None:
    """Parses the capture's folder from its name."""
    match = _CAPTURE.fullmatch(folder.name)
    if match is None:
        return None
    return CaptureFolder(folder, folder.parent.name, int(match["number"]), match["provider"], match["id"])


def _folders(parent: Path) -> Iterator[Path]:
    yield from (Path(one.path) for one in _scan(parent) if one.is_dir(follow_symlinks=False))


def _artifacts(folder: Path, prefix: str) -> Iterator[Artifact]:
    for entry in _scan(folder):
        match = _ARTIFACT.fullmatch(entry.name)
        try:
            info = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # removed meanwhile
            continue
        if match and stat.S_ISREG(info.st_mode):
            yield Artifact(
                Path(entry.path), prefix + entry.name, match["station"], match["what"], info.st_size, info.st_mtime
            )


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    """The folder's entries by name, none where it is missing or a link."""
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


@dataclass(slots=True)
class Removal:
    """The sum of a removal, and the folders kept since they hold something that is not ours."""

    captures: int = 0
    files: int = 0
    size: int = 0
    kept: int = 0


def measured(captures: Iterable[CaptureFolder]) -> Removal:
    """The sum of what a removal would delete."""
    done = Removal()
    for capture in captures:
        sizes = [one.size for one in capture.artifacts()]
        done.captures += 1
        done.files += len(sizes)
        done.size += sum(sizes)
    return done


def remove(captures: Iterable[CaptureFolder]) -> Removal:
    """Removes them. Raises OSError for the first file that cannot be removed, once all others are."""
    done = Removal()
    first: OSError | None = None
    for capture in captures:
        for artifact in capture.artifacts():
            try:
                artifact.path.unlink(missing_ok=True)
            except OSError as error:
                first = first or error
                continue
            done.files += 1
            done.size += artifact.size
        _remove_empty(capture.path / EVENTS)
        gone = _remove_empty(capture.path)
        done.captures += gone
        done.kept += not gone
        _remove_empty(capture.path.parent)
    if first is not None:
        raise first
    return done


def _remove_empty(folder: Path) -> bool:
    try:
        folder.rmdir()  # refuses a link, and a folder that holds something
    except OSError:
        return not folder.exists()
    return True
