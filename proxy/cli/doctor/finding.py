"""The input of a check, and its findings."""

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
from proxy.cli.launch.own_files import home_of
from proxy.cli.launch.shells import SHELLS, Shell, usual_shell
from proxy.cli.paths import config_root, state_root
from proxy.config import Config

#: By weight, the lightest first.
LEVELS = ("ok", "note", "warn", "fail")
Level = Literal["ok", "note", "warn", "fail"]

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one checked thing.

    level  ok; note: worth knowing; warn: something will not work as meant; fail: something does not work
    what   in a few words, for users who read nothing else
    why    the consequence, or the evidence
    cure   the exact command or edit; warnings and failures always have one
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
    """The set-up that is checked.

    file     the settings; None where they cannot be used, and then `config` has the defaults
    known    the sign-ins as they are stored
    offline  no host is asked
    say      informs the user before an action
    asked    the hosts that were asked, as shown to the user
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
        return home_of(self.environment)

    @property
    def shell(self) -> Shell:
        return SHELLS[usual_shell(self.environment, sys.platform)]

    def unset(self, name: str) -> str:
        """The command that unsets a variable in the user's shell."""
        return self.shell.unset(name)

    def export(self, name: str, value: object) -> str:
        """The command that sets one."""
        return f'$env:{name} = "{value}"' if sys.platform == "win32" else f"export {name}={value}"


Check = Callable[[Setup], Awaitable[Sequence[Finding]] | Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Group:
    """Checks that belong together.

    name     in JSON; `title` for readers
    settled  checks of the settings' values: without usable settings they would check the defaults
    """

    name: str
    title: str
    checks: tuple[Check, ...] = ()
    settled: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """The findings of a group."""

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
    """Evaluates a test of a path; False where access is denied."""
    try:
        return kind(path.stat().st_mode)
    except OSError:
        return False


def own_id() -> int | None:
    """The user id of this process; None where users have no numbers."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def json_of(finding: Finding) -> dict[str, Any]:
    members = {"level": finding.level, "what": finding.what, "why": finding.why, "cure": finding.cure}
    return {name: value for name, value in members.items() if value}
