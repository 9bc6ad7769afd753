"""Which rows of a large table, and how many examples of a property, a run of the suite takes: a sample, or everything
with `--all` (a nightly run, a release).

A sample keeps the power to find a defect, because what is left out differs only in what makes no difference to the code
that runs. It is a design and not chance: the same rows every time, chosen so that each combination of features that
occurs in the table occurs in the sample. `scripts/mutants` shows what a sample no longer finds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from heapq import heapify, heappop, heappush
from inspect import iscoroutinefunction, signature
from itertools import combinations
from typing import Any, TypeVar, cast

import pytest

#: Of the examples of a property test, one in so many is tried in a sample, and with `--quick`.
SAMPLED, QUICK = 8, 20
#: Fewest examples of a property test.
FEWEST = 5

#: Of a row. One that is skipped would hide the others.
_FAILURES = (Exception, BaseExceptionGroup, pytest.fail.Exception, pytest.skip.Exception)

Row = TypeVar("Row", bound=tuple[Any, ...])
Features = Callable[..., Sequence[Hashable]]
Test = TypeVar("Test", bound=Callable[..., Any])


class Extent:
    """How much of the suite runs. Set once by conftest, before a test module is imported."""

    everything = False
    quick = False


def examples(number: int) -> int:
    """Number of examples of a property test, for `settings(max_examples=…)`."""
    if Extent.everything:
        return number
    return max(FEWEST, number // (QUICK if Extent.quick else SAMPLED))


def each(number: int, features: Features | None = None) -> pytest.MarkDecorator:
    """Samples the cases of a test: each combination of `number` features that occurs in its table is run once.

    `each(1)` runs each value once, `each(2)` each pair. The features of a case are its axes, which are its
    `parametrize` marks, or what `features` returns for its arguments: a sequence, of the same length for all."""
    return pytest.mark.each(number, features)


def sampled(rows: Iterable[Row], number: int, features: Features | None = None) -> list[Row]:
    """As `each`, for the rows of a table that one test walks through. The features of a row are its members."""
    kept = list(rows)
    if Extent.everything:
        return kept
    table = [features(*row) if features else [repr(feature) for feature in row] for row in kept]
    return [kept[at] for at in covering(table, number)]


@contextmanager
def walk() -> Iterator[Callable[[object], AbstractContextManager[None]]]:
    """For a test that walks through many rows, each `with row(name):`. It fails with all that fail, and their names."""
    failed: list[BaseException] = []

    @contextmanager
    def row(name: object) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            error.add_note(f"in the row {name}")
            failed.append(error)

    yield row
    if failed:
        raise BaseExceptionGroup("rows", failed)


def rows(names: str, table: Iterable[Any]) -> Callable[[Test], Test]:
    """Has one case walk through the table, where `pytest.mark.parametrize` makes one of each row. For tests that take
    less time than a case does, and for a server that all rows may share: none may see what another one left."""
    given, kept = names.split(", "), list(table)
    if not kept:
        raise ValueError("a table without rows")

    def decorate(test: Test) -> Test:
        def each_row() -> Iterator[tuple[AbstractContextManager[None], dict[str, Any]]]:
            with walk() as row:
                for values in kept:
                    members = dict(zip(given, values if len(given) > 1 else [values], strict=True))
                    yield row(str(members)[:200]), members

        @wraps(test)
        def walked(**fixtures: Any) -> None:
            for row, members in each_row():
                with row:
                    test(**fixtures, **members)

        @wraps(test)
        async def awaited(**fixtures: Any) -> None:
            for row, members in each_row():
                with row:
                    if "live" in fixtures:
                        fixtures["live"].forget()
                    await test(**fixtures, **members)

        made: Any = awaited if iscoroutinefunction(test) else walked
        asked = signature(test)
        made.__signature__ = asked.replace(
            parameters=[one for one in asked.parameters.values() if one.name not in given]
        )
        return cast(Test, made)

    return decorate


def covering(table: Sequence[Sequence[Hashable]], number: int) -> list[int]:
    """Positions of the rows of a table of features in which each combination of `number` occurs. Of the rows that are
    left, the one with most new combinations is taken next, the first of equals."""
    missing = [{*combinations(enumerate(row), min(number, len(row)))} for row in table]
    found: set[Hashable] = set()
    chosen = []
    queue = [(-len(new), at) for at, new in enumerate(missing)]  # what was new when it was last looked at, or less
    heapify(queue)
    while queue:
        most, at = heappop(queue)
        missing[at] -= found
        if len(missing[at]) < -most:
            heappush(queue, (-len(missing[at]), at))
        elif most:
            found |= missing[at]
            chosen.append(at)
    return sorted(chosen)


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The cases that a sample does not run."""
    tables: dict[str, list[tuple[pytest.Item, Sequence[Hashable]]]] = defaultdict(list)
    numbers = {}
    for item in items:
        mark = item.get_closest_marker("each")
        if mark is not None and isinstance(item, pytest.Function):
            name = item.nodeid.partition("[")[0]
            numbers[name], features = mark.args
            tables[name].append((item, _features(item, features)))
    out: set[pytest.Item] = set()
    for name, cases in tables.items():
        run = {*covering([features for _, features in cases], numbers[name])}
        out.update(item for at, (item, _) in enumerate(cases) if at not in run)
    return out


def _features(item: pytest.Function, features: Features | None) -> Sequence[Hashable]:
    """Those of a case; the values of an axis are the same objects in all cases."""
    params = {name: value for name, value in item.callspec.params.items() if not name.startswith("_")}  # of the plugin
    if features is not None:
        return features(**params)
    axes = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = [axis.replace(" ", "").split(",") if isinstance(axis, str) else axis for axis in axes]
    return [tuple(id(params[name]) for name in axis) for axis in names]
