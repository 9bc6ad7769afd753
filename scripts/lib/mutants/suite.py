"""Takes the place of pytest's loop over the tests: first what each test reaches, then the tests of each mutant."""

from __future__ import annotations

import builtins
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
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
#: When it is not known.
_USUAL_S = 5.0
#: Outcomes of a mutant.
NOTICED = ("killed", "hung")


@dataclass(frozen=True)
class Options:
    """`again`: these mutants instead of a choice, each with the test that noticed it. `cpu_s`: of one mutant. `hang_s`:
    of one test, beside five times what it took without a change."""

    rooms: Sequence[str]
    number: int = 220
    seed: int = 1
    again: Mapping[Mutant, str] = field(default_factory=dict)
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
    """A plugin of pytest. `said` is called with what happens, `saved` with a suffix and what to keep under it."""

    def __init__(self, options: Options, said: Callable[[str], None], saved: Callable[[str, Any], None]) -> None:
        self.options, self._said, self._saved = options, said, saved
        self.verdicts: dict[Mutant, Verdict] = {}
        self._mutants: list[Mutant] = []
        self._tests: list[pytest.Item] = []
        self._runs: dict[int, Run] = {}
        self._outcomes = Outcomes()
        self._reaching: dict[int, list[int]] = defaultdict(list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None  # pytest says what could not be collected
        session.config.pluginmanager.register(self._outcomes)
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # the children share it
        setattr(builtins, _RECORDER, REACHED.add)
        self._tests = session.items
        options = self.options
        if options.again:
            self._ask_the_same_again()
        else:
            self._mutants = chosen(options.rooms, options.number, options.seed, _usable)
        if self._mutants:
            self._look_at_all()
            self._judge_all()
        return True

    def _ask_the_same_again(self) -> None:
        """The test that noticed a mutant comes first. What is left needs a look at all tests."""
        numbers = {test.nodeid: number for number, test in enumerate(self._tests)}
        self._mutants = [mutant for mutant in self.options.again if _usable(mutant)]
        for number, mutant in enumerate(self._mutants):
            if (test := numbers.get(self.options.again[mutant])) is not None:
                self._reaching[number].append(test)
        self._judge_all()
        self._mutants = [mutant for mutant in self._mutants if self.verdicts[mutant].outcome not in NOTICED]
        self._reaching.clear()

    def _judge_all(self) -> None:
        for number, verdict in self._pooled(Suite._judge, range(len(self._mutants))):
            mutant = self._mutants[number]
            self.verdicts[mutant] = verdict
            self._said(f"{len(self.verdicts)} {verdict.outcome} {mutant} {verdict.test}")
            rows = [{"mutant": asdict(mutant), **asdict(verdict)} for mutant, verdict in self.verdicts.items()]
            self._saved("", {"mutants": rows})

    def _look_at_all(self) -> None:
        starts = range(0, len(self._tests), _SHARE)
        self._said(f"{len(self._mutants)} mutants; looking what {len(self._tests)} tests reach")
        shares = {}
        for start, runs in self._pooled(Suite._look, starts):
            shares[start] = runs
            self._said(f"{len(shares)} of {len(starts)} shares of the tests")
        self._runs = dict(enumerate(run for start in starts for run in shares[start]))
        self._order()
        tests = {test.nodeid: self._runs[number] for number, test in enumerate(self._tests)}
        self._saved(".reach", {"mutants": [asdict(mutant) for mutant in self._mutants], "tests": tests})

    def _order(self) -> None:
        """The tests of each mutant, of each test function a quick one first."""
        places: Counter[str] = Counter()
        order = []
        for number, (test, run) in enumerate(zip(self._tests, self._runs.values(), strict=True)):
            function = test.nodeid.partition("[")[0]
            places[function] += 1
            if run.outcome == "passed":
                order.append((places[function], run.seconds, number))
            else:
                self._said(f"not asked, {run.outcome} without a change: {test.nodeid}")
        for *_, number in sorted(order):
            for mutant in self._runs[number].reached:
                self._reaching[mutant].append(number)

    def _pooled(self, method: Callable[[Suite, int], Any], numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        with get_context("fork").Pool(self.options.workers, _begin, (self, method)) as pool:
            yield from pool.imap_unordered(_work, numbers)

    def _look(self, start: int) -> list[Run]:
        tests = self._tests[start : start + _SHARE]
        runs: list[Run] = []
        while len(runs) < len(tests):
            runs += run_in_child(tests[len(runs) :], self._outcomes, self._probe, lambda _: _LONG_S)
        for number, (test, run) in enumerate(zip(tests, runs, strict=True)):
            if run.outcome != "passed":  # perhaps because the machine stood still
                [runs[number]] = run_in_child([test], self._outcomes, self._probe, lambda _: _LONG_S)
        return runs

    def _probe(self) -> None:
        by_function: dict[str, dict[Mutant, int]] = defaultdict(dict)
        for number, mutant in enumerate(self._mutants):
            by_function[mutant.file][mutant] = number
        for file, probes in by_function.items():
            tree = with_probes(file, probes, _RECORDER)
            for function in {mutant.function for mutant in probes}:
                swapped(file, function, tree)

    def _judge(self, number: int) -> Verdict:
        mutant, left = self._mutants[number], self._reaching[number]
        verdict = Verdict("survived" if left else "unreached", reached_by=len(left))
        began, cpu_s = time.perf_counter(), 0.0
        while left and not verdict.test:
            for run in self._run(left, mutant):
                verdict.tried += 1
                cpu_s += run.cpu_s
                test = left.pop(0)
                if run.outcome != "passed":
                    if all(again.outcome == "passed" for again in self._run([test])):
                        verdict.outcome = "hung" if run.outcome == "hung" else "killed"
                        verdict.test = self._tests[test].nodeid
                    break
                if left and cpu_s > self.options.cpu_s:
                    verdict.outcome, left = "unfinished", []
                    break
        verdict.seconds = round(time.perf_counter() - began, 1)
        return verdict

    def _run(self, numbers: Sequence[int], mutant: Mutant | None = None) -> Iterator[Run]:
        tests = [self._tests[number] for number in numbers]
        usual = [self._runs.get(number, Run("passed", _USUAL_S)).seconds for number in numbers]
        patience = [self.options.hang_s + 5 * seconds for seconds in usual]
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
