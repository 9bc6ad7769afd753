"""Does a plan."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from proxy.auth.store import naming
from proxy.cli.service.plan import MARK, Folder, Plan, Ran, Removed, Step, Written, typed
from proxy.config import ConfigError

#: Runs a command whose output the user sees; its exit status. Raises FileNotFoundError where there is no such program.
Runner = Callable[[Sequence[str]], int]

NOT_FOUND = "{0} is not here: this system has no services of that kind"


def run_command(command: Sequence[str]) -> int:
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode  # noqa: S603


def run_quietly(command: Sequence[str]) -> int:
    """For what may fail: its complaint would frighten."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode  # noqa: S603


def do(plan: Plan, run: Runner, quietly: Runner) -> None:
    """Does each step in order. Raises ConfigError for the first command that fails, and OSError for a file."""
    for step in plan.steps:
        _do(step, run, quietly)


def status_of(run: Runner, step: Ran) -> int:
    """The exit status of a command. Raises ConfigError where there is no such program."""
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
        case Written():
            _write(step)
        case Removed(path):
            path.unlink(missing_ok=True)
        case Ran(command, may_fail):
            status = status_of(quietly if may_fail else run, step)
            if status and not may_fail:
                raise ConfigError(f"`{typed(command)}` ended with {status}; what was done before it stays")


def _write(step: Written) -> None:
    """In one step, so that nobody reads half of it."""
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
