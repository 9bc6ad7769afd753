"""Steps one after another, each timed, and the table that tells how they ended."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

#: Of what a command that failed printed, so many lines are shown.
MAX_LINES = 25


class Failed(Exception):
    """A step that found something wrong; the message says what."""


class Skipped(Exception):
    """A step that could not look; the message says why. No failure, but never called passed."""


@dataclass(frozen=True, slots=True)
class Step:
    """check   returns what was seen, in a line
    advice  what to do when it fails
    """

    name: str
    check: Callable[[], str]
    advice: str


@dataclass(frozen=True, slots=True)
class Outcome:
    step: Step
    result: str
    seconds: float
    seen: str


def run_steps(
    steps: Iterable[Step], tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> list[Outcome]:
    """All of them, also behind one that failed: somebody mends everything at once."""
    outcomes = []
    for step in steps:
        tell(f"-- {step.name}")
        begun = clock()
        result, seen = _outcome(step)
        outcomes.append(Outcome(step, result, clock() - begun, seen))
        tell(f"   {result}: {seen}")
    return outcomes


def _outcome(step: Step) -> tuple[str, str]:
    try:
        return "passed", step.check()
    except Skipped as reason:
        return "SKIPPED", str(reason)
    except Failed as error:
        return "FAILED", str(error)
    except (OSError, ValueError, subprocess.SubprocessError) as error:  # a file or a command that is not there
        return "FAILED", f"{type(error).__name__}: {error}"


def table(outcomes: Sequence[Outcome]) -> str:
    """A row for each step, then what to do about those that failed."""
    width = max((len(outcome.step.name) for outcome in outcomes), default=0)
    rows = [
        f"{outcome.step.name:{width}}  {outcome.result:7} {outcome.seconds:7.1f} s  {outcome.seen.splitlines()[0]}"
        for outcome in outcomes
    ]
    cures = [f"{outcome.step.name}: {outcome.step.advice}" for outcome in outcomes if outcome.result == "FAILED"]
    return "\n".join([*rows, *(["", "What to do:"] if cures else []), *cures])


Run = Callable[[Sequence[str]], str]


def run_command(command: Sequence[str]) -> str:
    """Runs a command in the current folder and returns its output. Raises Failed with the end of what it printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-MAX_LINES:])
        raise Failed(f"`{' '.join(command)}` ended with {done.returncode}\n{end}")
    return done.stdout
