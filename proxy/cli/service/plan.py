"""What would be done, in order. Nothing here does any of it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

#: Stands in each file that this program writes. One without it is somebody else's, and is left alone.
MARK = "written by model-proxy service install"


@dataclass(frozen=True, slots=True)
class Folder:
    """One that has to be there; what it makes is the user's alone."""

    path: Path


@dataclass(frozen=True, slots=True)
class Written:
    """A file and its whole content."""

    path: Path
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Removed:
    """A file that is taken away, if it is there."""

    path: Path


@dataclass(frozen=True, slots=True)
class Ran:
    """A command. may_fail: what it undoes may not be there."""

    command: tuple[str, ...]
    may_fail: bool = False


Step = Folder | Written | Removed | Ran


@dataclass(frozen=True, slots=True)
class Plan:
    """steps  in order
    hints     what the user should know, or do himself"""

    steps: tuple[Step, ...]
    hints: tuple[str, ...] = ()


class Kind(Protocol):
    """A kind of service. Making plans touches nothing."""

    @property
    def file(self) -> Path:
        """What describes the service."""

    def install(self) -> Plan: ...

    def uninstall(self) -> Plan: ...

    def status(self) -> Ran:
        """Prints the state; ends with 0 while the service runs."""


def described(plan: Plan, *, windows: bool = False) -> Iterator[str]:
    """The lines that tell of a plan: every file in full, every command as one could type it."""
    for step in plan.steps:
        match step:
            case Folder(path):
                yield f"folder  {path}"
            case Removed(path):
                yield f"remove  {path}"
            case Ran(command):
                yield f"run     {typed(command, windows=windows)}"
            case Written(path, content, mode):
                yield f"write   {path} ({mode:04o})"
                yield from (f"        | {line}".rstrip() for line in _text(content).splitlines())


def typed(command: Iterable[str], *, windows: bool = False) -> str:
    return subprocess.list2cmdline(list(command)) if windows else shlex.join(command)


def _text(content: bytes) -> str:
    return content.decode("utf-16" if content.startswith(b"\xff\xfe") else "utf-8")
