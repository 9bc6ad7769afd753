"""Takes the place of pytest's loop over the tests: first what each test reaches, then the tests of each mutant."""

from __future__ import annotations

import builtins
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import pytest

from .forks import REACHED, Outcomes, Run, run_in_child
from .live import swapped
from .source import Mutant, chosen, mutated, parsed, with_probes

_RECORDER = "_mutant_reached"
_SHARE = 300
#: No test without a change takes longer.
_LONG_S = 300.0


@dataclass(frozen=True)
class Options:
    """`again`: these mutants instead of a choice. `cpu_s`: of one mutant. `hang_s`: of one test, beside five times
    what it took without a change."""

    rooms: Sequence[str]
    number: int = 220
    seed: int = 1
    again: Sequence[Mutant] = ()
    workers: int = 2
    cpu_s: float = 60
    hang_s: float = 15


@dataclass(slots=True)
class Verdict:
    """`outcome`: "killed" by `test`, "hung" in it, "survived" all that reach it, "unfinished" when its CPU time was
    used up, or "unreached" by any test."""

    outcome: str
    test: str = ""
    seconds: float = 0.0
    tried: int = 0
    reached_by: int = 0


class Suite:
    """A plugin of pytest. `said` is called with what happens, `saved` when there is more to save."""

    def __init__(self, options: Options, said: Callable[[str], None], saved: Callable[[Suite], None]) -> None:
        self.options, self._said, self._saved = options, said, saved
        self.mutants: list[Mutant] = []
        self.tests: list[pytest.Item] = []
        self.runs: list[Run] = []
        self.verdicts: dict[Mutant, Verdict] = {}
        self._outcomes = Outcomes()
        self._reaching: dict[int, list[int]] = defaultdict(list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None  # pytest says what could not be collected
        session.config.pluginmanager.register(self._outcomes)
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # the children share it
        self.tests = session.items
        options = self.options
        self.mutants = [mutant for mutant in options.again if _usable(mutant)]
        self.mutants = self.mutants or chosen(options.rooms, options.number, options.seed, _usable)
        setattr(builtins, _RECORDER, REACHED.add)
        self._look_at_all()
        for number, verdict in self._pooled(Suite._judge, range(len(self.mutants))):
            mutant = self.mutants[number]
            self.verdicts[mutant] = verdict
            self._said(f"{len(self.verdicts)} {verdict.outcome} {mutant} {verdict.test}")
            self._saved(self)
        return True

    def _look_at_all(self) -> None:
        starts = range(0, len(self.tests), _SHARE)
        self._said(f"{len(self.mutants)} mutants; looking what {len(self.tests)} tests reach")
        shares = {}
        for start, runs in self._pooled(Suite._look, starts):
            shares[start] = runs
            self._said(f"{len(shares)} of {len(starts)} shares of the tests")
        self.runs = [run for start in starts for run in shares[start]]
        places: Counter[str] = Counter()
        order = []
        for number, (test, run) in enumerate(zip(self.tests, self.runs, strict=True)):
            function = test.nodeid.partition("[")[0]
            places[function] += 1
            if run.outcome == "passed":
                order.append((places[function], run.seconds, number))
            else:
                self._said(f"not asked, {run.outcome} without a change: {test.nodeid}")
        for *_, number in sorted(order):  # of each function a quick one first
            for mutant in self.runs[number].reached:
                self._reaching[mutant].append(number)
        self._saved(self)

    def _pooled(self, method: Callable[[Suite, int], Any], numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        with get_context("fork").Pool(self.options.workers, _begin, (self, method)) as pool:
            yield from pool.imap_unordered(_work, numbers)

    def _look(self, start: int) -> list[Run]:
        tests = self.tests[start : start + _SHARE]
        runs: list[Run] = []
        while len(runs) < len(tests):
            runs += run_in_child(tests[len(runs) :], self._outcomes, self._probe, lambda _: _LONG_S)
        for number, (test, run) in enumerate(zip(tests, runs, strict=True)):
            if run.outcome != "passed":  # perhaps because the machine stood still
                [runs[number]] = run_in_child([test], self._outcomes, self._probe, lambda _: _LONG_S)
        return runs

    def _probe(self) -> None:
        by_function: dict[str, dict[Mutant, int]] = defaultdict(dict)
        for number, mutant in enumerate(self.mutants):
            by_function[mutant.file][mutant] = number
        for file, probes in by_function.items():
            tree = with_probes(file, probes, _RECORDER)
            for function in {mutant.function for mutant in probes}:
                swapped(file, function, tree)

    def _judge(self, number: int) -> Verdict:
        mutant, left = self.mutants[number], self._reaching[number]
        verdict = Verdict("survived" if left else "unreached", reached_by=len(left))
        began, cpu_s = time.perf_counter(), 0.0
        while left and not verdict.test:
            for run in self._runs(left, mutant):
                verdict.tried += 1
                cpu_s += run.cpu_s
                test = left.pop(0)
                if run.outcome != "passed":
                    if all(again.outcome == "passed" for again in self._runs([test])):
                        verdict.outcome = "hung" if run.outcome == "hung" else "killed"
                        verdict.test = self.tests[test].nodeid
                    break
                if left and cpu_s > self.options.cpu_s:
                    verdict.outcome, left = "unfinished", []
                    break
        verdict.seconds = round(time.perf_counter() - began, 1)
        return verdict

    def _runs(self, numbers: Sequence[int], mutant: Mutant | None = None) -> Iterator[Run]:
        tests = [self.tests[number] for number in numbers]
        patience = [self.options.hang_s + 5 * self.runs[number].seconds for number in numbers]
        prepare = (lambda: _applied(mutant)) if mutant else (lambda: None)
        with closing(run_in_child(tests, self._outcomes, prepare, patience.__getitem__)) as runs:
            yield from runs


def _applied(mutant: Mutant) -> bool:
    return swapped(mutant.file, mutant.function, mutated(mutant))


def _usable(mutant: Mutant) -> bool:
    """Whether it is found in the source and in what is imported, which is as before afterwards."""
    with suppress(KeyError, FileNotFoundError):
        return _applied(mutant) and swapped(mutant.file, mutant.function, parsed(mutant.file))
    return False


_work_of: tuple[Suite, Callable[[Suite, int], Any]]


def _begin(suite: Suite, method: Callable[[Suite, int], Any]) -> None:
    global _work_of
    _work_of = suite, method


def _work(number: int) -> tuple[int, Any]:
    suite, method = _work_of
    return number, method(suite, number)
