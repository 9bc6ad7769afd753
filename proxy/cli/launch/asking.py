"""Asks an installed client a short question: bounded in time and in what it may print while it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Literal

#: Seconds between two looks at a client that runs.
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """What a client printed. `problem`: why it is no answer, "" for none."""

    output: bytes
    problem: str = ""


def ask(
    command: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    most: int,
    keeps: Literal["output", "errors", "both"] = "output",
    given_up: Callable[[], bool] = lambda: False,
) -> ClientAnswer:
    """Runs a command that needs no input. It is ended, with all that it started, after this long, with more output, or
    when it is given up in another thread.

    The client writes to a file: a process that it started might keep a pipe open, and would be waited for.
    """
    try:
        with tempfile.TemporaryFile() as file:
            process = subprocess.Popen(  # noqa: S603
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if keeps == "errors" else file,
                stderr=subprocess.DEVNULL if keeps == "output" else file,
                env=dict(environment),
                start_new_session=True,
            )
            try:
                problem = _watched(process, file, seconds, most, given_up)
            finally:
                _end(process)
            file.seek(0)
            return ClientAnswer(file.read(most), problem)
    except (OSError, ValueError) as error:
        return ClientAnswer(b"", f"it does not start: {getattr(error, 'strerror', None) or error}")


def _watched(
    process: subprocess.Popen[bytes], file: IO[bytes], seconds: float, most: int, given_up: Callable[[], bool]
) -> str:
    """Waits for the end of a process; returns why it has given no answer, or ""."""
    end = time.monotonic() + seconds
    while process.poll() is None and os.fstat(file.fileno()).st_size <= most:
        left = end - time.monotonic()
        if left <= 0 or given_up():
            return f"it did not answer within {seconds:.2g} s"
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(left, _POLL_S))
    if os.fstat(file.fileno()).st_size > most:
        return f"it prints more than {most} bytes"
    return f"it ends with status {process.returncode}" if process.returncode else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that still runs, with all that it started where processes have groups."""
    if process.poll() is None:
        with suppress(ProcessLookupError):  # it ended at this moment
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
        process.wait()
