"""The samples that a run of the suite takes of large tables."""

from __future__ import annotations

import inspect
import itertools

import pytest
import samples
from samples import Extent, covering, examples, rows, sampled

pytest_plugins = "pytester"
AXES = ("abcd", "xyz", "12")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_combination_of_so_many_features_is_covered(number: int) -> None:
    table = list(itertools.product(*AXES))
    rows = [table[at] for at in covering(table, number)]
    for axes in itertools.combinations(range(len(AXES)), number):
        assert {tuple(row[axis] for axis in axes) for row in rows} == {*itertools.product(*(AXES[n] for n in axes))}
    assert len(rows) <= {1: 4, 2: 14, 3: len(table)}[number]


def test_no_row_is_taken_that_adds_nothing() -> None:
    assert covering([("a", 1), ("a", 1), ("b", 1)], 1) == [0, 2]
    assert covering([], 2) == []


@pytest.mark.parametrize(("everything", "quick", "number"), [(True, False, 300), (False, False, 37), (False, True, 15)])
def test_how_many_examples_and_rows(
    monkeypatch: pytest.MonkeyPatch, everything: bool, quick: bool, number: int
) -> None:
    monkeypatch.setattr(Extent, "everything", everything)
    monkeypatch.setattr(Extent, "quick", quick)
    assert examples(300) == number and examples(1) == (1 if everything else samples.FEWEST)
    table = list(itertools.product(*AXES))
    assert (sampled(table, 1) == table) is everything


async def test_a_walk_tells_all_rows_that_fail() -> None:
    tried = []

    @rows("number, word", [(1, "a"), (2, "b"), (3, "c")])
    async def test(fixture: str, number: int, word: str) -> None:
        tried.append((fixture, number, word))
        assert number == 2

    assert [*inspect.signature(test).parameters] == ["fixture"]
    with pytest.raises(ExceptionGroup) as caught:
        await test(fixture="x")
    failed = [error.__notes__[-1] for error in caught.value.exceptions]
    assert failed == [f"in the row {{'number': {number}, 'word': '{word}'}}" for number, word in ((1, "a"), (3, "c"))]
    assert tried == [("x", 1, "a"), ("x", 2, "b"), ("x", 3, "c")]


def test_a_row_that_is_skipped_or_raises_nothing_is_one_that_fails() -> None:
    tried = []

    @rows("number", [1, 2, 3])
    def test(number: int) -> None:
        tried.append(number)
        if number == 1:
            pytest.skip("not today")
        with pytest.raises(RuntimeError):
            pass

    with pytest.raises(BaseExceptionGroup) as caught:
        test()
    assert tried == [1, 2, 3] and len(caught.value.exceptions) == 3


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="without rows"):
        rows("number", [])


def test_a_table_may_be_within_another() -> None:
    tried: list[tuple[str, int]] = []

    @rows("letter", "ab")
    @rows("number", [1, 2])
    def test(letter: str, number: int) -> None:
        tried.append((letter, number))
        assert (letter, number) != ("b", 1)

    with pytest.raises(ExceptionGroup) as caught:
        test()
    (failed,) = caught.value.exceptions
    assert isinstance(failed, ExceptionGroup) and failed.__notes__ == ["in the row {'letter': 'b'}"]
    assert failed.exceptions[0].__notes__ == ["in the row {'number': 1}"]
    assert tried == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


TABLE = """
import pytest
from samples import each

@each(1)
@pytest.mark.parametrize("x", "abc")
@pytest.mark.parametrize("y", "ab")
def test_axes(x, y): pass

@each(1, lambda x, y: (x == y,))
@pytest.mark.parametrize("x", "abc")
@pytest.mark.parametrize("y", "ab")
def test_features(x, y): pass
"""


@pytest.mark.parametrize(("arguments", "ran"), [([], 5), (["--all"], 12), (["test_it.py::test_axes[b-c]"], 1)])
def test_cases_are_left_out(pytester: pytest.Pytester, arguments: list[str], ran: int) -> None:
    pytester.makepyfile(test_it=TABLE)
    pytester.makeconftest(
        "from samples import Extent, left_out\n"
        "def pytest_addoption(parser): parser.addoption('--all', action='store_true')\n"
        "def pytest_collection_modifyitems(config, items):\n"
        "    out = set() if config.getoption('--all') else left_out(items)\n"
        "    items[:] = [item for item in items if item not in out]\n"
    )
    pytester.runpytest("-W", "ignore", *arguments).assert_outcomes(passed=ran)
