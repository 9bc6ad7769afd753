"""`service install|uninstall|status`: prints what it will do, then does it."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from proxy.auth.store import naming
from proxy.cli.command import Context, say
from proxy.cli.service.plan import MARK, Folder, Plan, Ran, Removed, ServiceKind, Step, WrittenFile, described, typed
from proxy.config import ConfigError

_ACTIONS = "install: write its file and start it; uninstall: the reverse; status: whether it runs"


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("action", choices=("install", "uninstall", "status"), help=_ACTIONS)
    parser.add_argument(
        "--system", action="store_true", help="of the machine, under a user of its own (systemd; needs root)"
    )
    parser.add_argument("--print", action="store_true", help="print what would be done, and do nothing")


async def run(arguments: argparse.Namespace, context: Context) -> int:
    kind = kind_of(context, sys.platform, system=arguments.system)
    if arguments.action == "status":
        return _status(kind, context.program, only_print=arguments.print)
    plan = kind.install() if arguments.action == "install" else kind.uninstall()
    if arguments.action == "uninstall" and not kind.file.exists() and not arguments.print:
        say(f"not installed: there is no {kind.file}")
        return 0
    for line in described(plan, windows=sys.platform == "win32"):
        say(line)
    if not arguments.print:
        _check_rights(arguments.system)
        check_own(kind.file)
        do(plan, run_command, run_quietly)
        say(f"{arguments.action}ed")
    for hint in plan.hints:
        say(f"note    {hint}")
    return 0


def kind_of(context: Context, platform: str, *, system: bool) -> ServiceKind:
    """The kind of service on this platform. Raises ConfigError when there is none."""
    from proxy.cli.service.launchd import Agent
    from proxy.cli.service.systemd import SystemUnit, UserUnit, has_user
    from proxy.cli.service.target import target_of
    from proxy.cli.service.windows import Task

    if system and platform in ("darwin", "win32"):
        raise ConfigError("--system is for systemd; here the service is the user's")
    target = target_of(context, platform)
    if platform == "win32":
        return Task(target)
    if platform == "darwin":
        return Agent(target)
    return SystemUnit(target, has_user()) if system else UserUnit(target)


def _check_rights(system: bool) -> None:
    if system and os.geteuid() != 0:
        raise ConfigError("--system needs root; --print shows the steps without it")


def _status(kind: ServiceKind, program: str, *, only_print: bool) -> int:
    """Prints the status; returns 0 while the service runs, 1 otherwise."""
    step = kind.status()
    there = kind.file.exists()
    say(f"{kind.file}: {'there' if there else f'not there; `{program} service install` writes it'}")
    if only_print or there:
        say(f"run     {typed(step.command, windows=sys.platform == 'win32')}")
    if only_print:
        return 0
    return 1 if not there or status_of(run_command, step) else 0


#: Runs a command with visible output; returns its exit status. Raises FileNotFoundError for a missing program.
Runner = Callable[[Sequence[str]], int]

NOT_FOUND = "{0} is not here: this system has no services of that kind"


def run_command(command: Sequence[str]) -> int:
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode  # noqa: S603


def run_quietly(command: Sequence[str]) -> int:
    """Runs a command that may fail, without its output, which would only cause alarm."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode  # noqa: S603


def do(plan: Plan, run: Runner, quietly: Runner) -> None:
    """Carries out each step in order. Raises ConfigError for the first command that fails, and OSError for a file."""
    for step in plan.steps:
        _do(step, run, quietly)


def status_of(run: Runner, step: Ran) -> int:
    """The exit status of a command. Raises ConfigError for a missing program."""
    try:
        return run(step.command)
    except FileNotFoundError:
        raise ConfigError(NOT_FOUND.format(step.command[0])) from None


def check_own(file: Path) -> None:
    """Raises ConfigError for a file that this program did not write."""
    with contextlib.suppress(FileNotFoundError):
        content = file.read_bytes()
        if MARK.encode() not in content and MARK.encode("utf-16-le") not in content:
            raise ConfigError(f"{file} was not written by this program, and stays as it is")


def _do(step: Step, run: Runner, quietly: Runner) -> None:
    match step:
        case Folder(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        case WrittenFile():
            _write(step)
        case Removed(path):
            path.unlink(missing_ok=True)
        case Ran(command, may_fail):
            status = status_of(quietly if may_fail else run, step)
            if status and not may_fail:
                raise ConfigError(f"`{typed(command)}` failed with status {status}; the steps before it are not undone")


def _write(step: WrittenFile) -> None:
    """Writes a file in one step, so that half of it is never read."""
    step.path.parent.mkdir(parents=True, exist_ok=True)
    fresh = step.path.with_name(f".{step.path.name}.{os.getpid()}")
    try:
        with (
            naming(step.path),
            os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, step.mode), "wb") as file,
        ):
            file.write(step.content)
        fresh.replace(step.path)
    finally:
        fresh.unlink(missing_ok=True)
