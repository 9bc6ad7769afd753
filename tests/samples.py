"""Which rows of a large table, and how many examples of a property, one run of the suite takes: a sample, or everything
with `--all` (a nightly run, a release).

A sample keeps the power to find a defect where rows differ in what makes no difference to the code that runs. It is a
design and not chance: the same rows every time, and each pair of features that occurs in the table occurs in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

Row = TypeVar("Row")

#: Of the examples of a property test, one in so many is tried in a sample.
EXAMPLES = 5
#: Fewest examples of a sample.
FEWEST = 10


class Extent:
    """How much of the suite runs. Set once by conftest, before a test module is imported."""

    everything = False


def examples(number: int) -> int:
    """Number of examples of a property test, for `settings(max_examples=…)`."""
    return number if Extent.everything else max(FEWEST, number // EXAMPLES)


def pairs(rows: Iterable[Row], features: Callable[[Row], Sequence[Hashable]]) -> list[Row]:
    """Rows in which each pair of features of one row occurs; all of them with `--all`.

    `features` returns for each row a sequence of the same length, such as (wire, fault, route). Of the rows that are
    left, the one with most new pairs is taken next, the first of equals."""
    kept = list(rows)
    if Extent.everything:
        return kept
    missing = [{*combinations(enumerate(features(row)), 2)} for row in kept]
    chosen: list[int] = []
    while (best := max(range(len(kept)), key=lambda at: len(missing[at]), default=None)) is not None and missing[best]:
        new = missing[best]
        missing = [left - new for left in missing]
        chosen.append(best)
    return [kept[at] for at in sorted(chosen)]
