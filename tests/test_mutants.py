"""scripts/mutants on a toy: what a test notices, what none does, and that a smaller sample is told from the whole."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samples import rows

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "lib"))

from mutants.forks import REACHED, Outcomes, run_in_child
from mutants.run import read
from mutants.source import mutants_of

LIB = Path(__file__).parents[1] / "scripts" / "lib"

TOY = """
LIMIT = 1 + 1


def adult(age):
    return age >= 18


def loud(text):
    if text:
        note(text)
    return text.upper()


def note(text):
    pass
"""

TESTS = """
import pytest
from toy.people import adult, loud


@pytest.mark.parametrize("age", [17, 18, 40])
def test_adult(age):
    assert adult(age) is (age > 17)


def test_loud():
    assert loud("a") == "A"


def test_that_fails_anyway():
    assert adult(3)
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutants.run", "--rooms", "toy", "--workers", "1", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(LIB), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_what_no_test_notices_is_told(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "people.py").write_text(TOY)
    (tmp_path / "test_people.py").write_text(TESTS)
    first = run(tmp_path, "--out", "all.json")
    assert first.returncode == 0, first.stderr
    outcomes = {
        (mutant.function, mutant.before, mutant.after): row for mutant, row in read(tmp_path / "all.json").items()
    }
    killed = outcomes["adult", "age >= 18", "age > 18"]
    assert (killed["outcome"], killed["test"]) == ("killed", "test_people.py::test_adult[18]")
    assert outcomes["loud", "note(text)", "pass"]["outcome"] == "survived"
    assert not any(function in ("", "note") for function, *_ in outcomes)
    assert "failed without a change: test_people.py::test_that_fails_anyway" in first.stderr

    smaller = run(tmp_path, "--compare", "all.json", "--", "-k", "not 18")
    assert smaller.returncode == 1
    assert "\n2 mutants; looking" in smaller.stderr  # the others: by the test that noticed them before
    assert "survived, before killed by test_people.py::test_adult[18]: toy/people.py:6 adult" in smaller.stderr


class Hook:
    """A test that does what it is told, as far as the child looks at one."""

    def __init__(self, does: Callable[[], object]) -> None:
        self.ihook = self
        self._does = does

    def pytest_runtest_protocol(self, **_: object) -> None:
        self._does()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("does", "outcome"), [(lambda: time.sleep(60), "hung"), (lambda: os._exit(1), "died"), (sys.exit, "died")]
)
def test_a_test_that_does_not_end_or_ends_the_process(does: Callable[[], object], outcome: str) -> None:
    tests: list[Any] = [Hook(lambda: REACHED.add(7)), Hook(does), Hook(does)]
    patience = [60, 0.2 if outcome == "hung" else 60]
    runs = [*run_in_child(tests, Outcomes(), REACHED.clear, patience.__getitem__)]
    assert [(run.outcome, run.reached) for run in runs] == [("passed", [7]), (outcome, ())]


@rows(
    "source",
    [
        "LIMIT = 1 + 1",
        "def f(a=1): ...",
        "@g(1)\ndef f(): ...",
        "def f():\n    x: a[1]",
        "def f():\n    '1 < 2'",
        "def f():\n    log.write(1 + 1)",
        "class A:\n    def __repr__(self): return self.a + 1",
        "def f():\n    return None",
    ],
)
def test_what_is_no_code_of_a_function_stays(source: str) -> None:
    assert mutants_of("f.py", ast.parse(source)) == {}


@rows(
    "line, after",
    [
        ("x = a < b", {"a <= b"}),
        ("x = a in b", {"a not in b"}),
        ("x = a is not b", {"a is b"}),
        ("x = a and b", {"a or b"}),
        ("x = not a", {"a"}),
        ("x = 1", {"2", "0"}),
        ("x = True", {"False"}),
        ("x += a", {"x -= a"}),
        ("x = a - b", {"a + b"}),
        ("return a", {"return None"}),
        ("await a()", {"pass"}),
        ("x = a if b else c", {"not b"}),
        ("while a: break", {"continue"}),
    ],
)
def test_changes(line: str, after: set[str]) -> None:
    tree = ast.parse(f"class A:\n    async def f(self):\n        def g(): pass\n        {line}")
    found = mutants_of("f.py", tree)
    assert {(mutant.function, mutant.line, mutant.after) for mutant in found} == {("A.f", 4, text) for text in after}
    for mutant, spot in found.items():
        spot.put()
        assert mutant.after in ast.unparse(tree)
