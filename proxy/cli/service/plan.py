"""The planned steps, in order, and the texts of the files. Nothing is done here."""

from __future__ import annotations

import importlib.resources
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

#: Marks the files that this program writes. A file without it belongs to others, and is not touched.
MARK = "written by model-proxy service install"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to create if missing, for the user only."""

    path: Path


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file and its whole content."""

    path: Path
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Removed:
    """A file to delete, if it exists."""

    path: Path


@dataclass(frozen=True, slots=True)
class Ran:
    """A command. `may_fail`: the thing that it undoes may not exist."""

    command: tuple[str, ...]
    may_fail: bool = False


Step = Folder | WrittenFile | Removed | Ran


@dataclass(frozen=True, slots=True)
class Plan:
    """steps  in order
    hints  what the user should know or do"""

    steps: tuple[Step, ...]
    hints: tuple[str, ...] = ()


def from_template(name: str, **values: str) -> str:
    """The text of a file in `templates/` with these values. A line that begins with `#:` is a note on the template."""
    text = (importlib.resources.files(__package__) / "templates" / name).read_text("utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#:")).format(**values)


class ServiceKind(Protocol):
    """A kind of service. Making plans changes nothing."""

    @property
    def file(self) -> Path:
        """The file that describes the service."""

    def install(self) -> Plan: ...

    def uninstall(self) -> Plan: ...

    def status(self) -> Ran:
        """Prints the state; ends with 0 while the service runs."""


def described(plan: Plan, *, windows: bool = False) -> Iterator[str]:
    """The lines that show a plan: every file in full, every command as it could be typed."""
    for step in plan.steps:
        match step:
            case Folder(path):
                yield f"folder  {path}"
            case Removed(path):
                yield f"remove  {path}"
            case Ran(command):
                yield f"run     {typed(command, windows=windows)}"
            case WrittenFile(path, content, mode):
                yield f"write   {path} ({mode:04o})"
                yield from (f"        | {line}".rstrip() for line in _text(content).splitlines())


def typed(command: Iterable[str], *, windows: bool = False) -> str:
    return subprocess.list2cmdline(list(command)) if windows else shlex.join(command)


def _text(content: bytes) -> str:
    return content.decode("utf-16" if content.startswith(b"\xff\xfe") else "utf-8")
