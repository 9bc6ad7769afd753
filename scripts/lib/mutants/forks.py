"""Runs tests in a child that ends with them, so that nothing they change stays."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import pytest

#: What the tests reached since the last look; the probes call its `add`.
REACHED: set[int] = set()


class Run(NamedTuple):
    """One test: "passed", "failed", "hung" or "died" with its process."""

    outcome: str
    seconds: float = 0.0
    cpu_s: float = 0.0
    reached: Sequence[int] = ()


class Outcomes:
    """A plugin that notices whether the test that runs has failed."""

    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed


def run_in_child(
    tests: Sequence[pytest.Item], outcomes: Outcomes, prepare: Callable[[], Any], patience: Callable[[int], float]
) -> Generator[Run, None, None]:
    """Each test as it ends. `patience`: the seconds that test N may take. The child ends with the last test, with one
    that hung or died, or when the generator is closed."""
    reading, writing = Pipe(duplex=False)
    child = os.fork()
    if not child:
        try:
            os.setsid()
            reading.close()
            prepare()
            _run(tests, outcomes, writing)
        finally:
            os._exit(0)
    writing.close()
    try:
        for number in range(len(tests)):
            if not reading.poll(patience(number)):
                yield Run("hung", patience(number))
                return
            yield reading.recv()
    except EOFError:
        yield Run("died")
    finally:
        reading.close()
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _run(tests: Sequence[pytest.Item], outcomes: Outcomes, writing: Connection) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    for test, after in zip(tests, [*tests[1:], None], strict=True):
        REACHED.clear()
        outcomes.failed = False
        began, spent = time.perf_counter(), time.process_time()
        test.ihook.pytest_runtest_protocol(item=test, nextitem=after)
        times = time.perf_counter() - began, time.process_time() - spent
        writing.send(Run("failed" if outcomes.failed else "passed", *times, sorted(REACHED)))
