"""What a check is given, and what it finds."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from proxy.cli.account import SignIn
from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.launch.shells import SHELLS, Shell, usual_shell
from proxy.cli.paths import config_root, state_root
from proxy.config import Config

#: In the order in which they weigh.
LEVELS = ("ok", "note", "warn", "fail")
Level = Literal["ok", "note", "warn", "fail"]

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    level  ok; note: worth knowing; warn: something will not work as meant; fail: something does not work
    what   in a few words, for somebody who reads only this
    why    what follows from it, or how it is known
    cure   the exact command or edit that mends it; warnings and failures always have one
    """

    level: Level
    what: str
    why: str = ""
    cure: str = ""


def ok(what: str, why: str = "") -> Finding:
    return Finding("ok", what, why)


def note(what: str, why: str = "", cure: str = "") -> Finding:
    return Finding("note", what, why, cure)


def warn(what: str, why: str, cure: str) -> Finding:
    return Finding("warn", what, why, cure)


def fail(what: str, why: str, cure: str) -> Finding:
    return Finding("fail", what, why, cure)


@dataclass(slots=True)
class Setup:
    """What is looked at.

    file     the settings; None where they cannot be used, and then `config` has the defaults
    known    the sign-ins as they are stored
    offline  nobody is asked
    say      tells the user something before it is done
    asked    the hosts that were asked, as they were told to the user
    skews    seconds that this machine's clock is ahead of each host that was asked
    """

    context: Context
    file: ConfigFile | None
    config: Config
    known: Sequence[SignIn]
    offline: bool = False
    say: Say = lambda _line: None
    clock: Callable[[], float] = time.time
    asked: list[str] = field(default_factory=list)
    skews: dict[str, float] = field(default_factory=dict)

    @property
    def environment(self) -> Mapping[str, str]:
        return self.context.environment

    @property
    def program(self) -> str:
        return self.context.program

    @property
    def config_root(self) -> Path:
        return config_root(self.environment)

    @property
    def state_root(self) -> Path:
        return state_root(self.environment)

    @property
    def home(self) -> Path:
        return Path(self.environment.get("HOME") or self.environment.get("USERPROFILE") or "/")

    @property
    def shell(self) -> Shell:
        return SHELLS[usual_shell(self.environment, sys.platform)]

    def unset(self, name: str) -> str:
        """What takes a variable away in the shell of the user."""
        return self.shell.unset(name)

    def export(self, name: str, value: object) -> str:
        """What sets one."""
        return f'$env:{name} = "{value}"' if sys.platform == "win32" else f"export {name}={value}"


Check = Callable[[Setup], Awaitable[Sequence[Finding]] | Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Group:
    """Checks that belong together.

    name     in JSON; `title` for readers
    settled  checks of the settings' values: without settings that can be used they would tell of the defaults
    """

    name: str
    title: str
    checks: tuple[Check, ...] = ()
    settled: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """What the checks of a group found."""

    group: Group
    findings: tuple[Finding, ...]


def worst(sections: Sequence[Section]) -> Level:
    """The heaviest level of all findings."""
    levels = [finding.level for section in sections for finding in section.findings]
    return max(levels, key=LEVELS.index, default="ok")


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the first above it that exists."""
    while not _is(stat.S_ISDIR, path) and path != path.parent:
        path = path.parent
    return path


def is_file(path: Path) -> bool:
    return _is(stat.S_ISREG, path)


def _is(kind: Callable[[int], bool], path: Path) -> bool:
    """False as well for what may not be looked at."""
    try:
        return kind(path.stat().st_mode)
    except OSError:
        return False


def own_id() -> int | None:
    """The user that this process runs as; None where users have no numbers."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def json_of(finding: Finding) -> dict[str, Any]:
    members = {"level": finding.level, "what": finding.what, "why": finding.why, "cure": finding.cure}
    return {name: value for name, value in members.items() if value}
