"""What requests used over time, by anything that a report is grouped by. Read from the sums, never from the requests.

A time is divided by `edges`, seconds since 1970: n + 1 of them make n periods. So days are those of whoever asks, with
their changes of summer time.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from proxy.observe.history.sums import DIMENSIONS, QUARTER_S, SUMMED, Counts, counts_of, percentile

#: The times of requests: to the first token, to the end.
TIMES = ("first", "total")

#: The key of a sum: number of the period, value (as in `DIMENSIONS`), model.
Key = TypeVar("Key")
Grouping = Callable[[int, str, str], Key]


@dataclass(slots=True)
class Usage(Counts):
    """Sums of requests. `first`, `total`: step of a time -> number of requests, of those that were answered."""

    first: Counter[int] = field(default_factory=Counter)
    total: Counter[int] = field(default_factory=Counter)

    def first_ms(self, share: float) -> float | None:
        """The time to the first token that `share` (0 to 1) of the requests did not exceed; None if unknown."""
        return percentile(self.first, share)

    def total_ms(self, share: float) -> float | None:
        """The time to the end that `share` (0 to 1) of the requests did not exceed; None if unknown."""
        return percentile(self.total, share)

    @property
    def cached_share(self) -> float | None:
        """The share of the input that came from the upstream's cache, 0 to 1; None if no service reported it."""
        return self.cached / self.cacheable if self.cacheable else None


@dataclass(frozen=True, slots=True)
class Grouped:
    """What a report is grouped by.

    dimension  which sums are read, of `DIMENSIONS`
    heads      the names of the parts of a key
    key        makes the key of a sum, a text for each head; of the number of the period where `periods` is set
    """

    dimension: str
    heads: tuple[str, ...]
    key: Grouping[tuple[str, ...]]
    periods: str = ""


def _label(account: str) -> str:
    return account.partition("/")[0]


#: What `--by` names -> how.
BY: Mapping[str, Grouped] = {
    "model": Grouped("account", ("provider", "model"), lambda _at, account, model: (_label(account), model)),
    "provider": Grouped("account", ("provider",), lambda _at, account, _model: (_label(account),)),
    "account": Grouped("account", ("account",), lambda _at, account, _model: (account,)),
    **{
        dimension: Grouped(dimension, (dimension,), lambda _at, value, _model: (value,))
        for dimension in ("project", "session", "caller")
    },
    "day": Grouped("account", ("day",), lambda at, _account, _model: (str(at),), "day"),
    "hour": Grouped("account", ("hour",), lambda at, _account, _model: (str(at),), "hour"),
}


def read_usage(
    db: sqlite3.Connection, dimension: str, edges: Sequence[float], key: Grouping[Key], *, times: Sequence[str] = TIMES
) -> dict[Key, Usage]:
    """The sums between the first and the last edge, by a key made of period, value and model. Texts that are not known
    are "". `times`: those of `TIMES` that are read, which takes about as long as everything else for each."""
    quarters = [-int(-edge // QUARTER_S) for edge in edges]  # a quarter belongs to the period that it begins in
    periods = ", ".join(f"({at}, {begin}, {end})" for at, (begin, end) in enumerate(pairwise(quarters)))
    steps = ", ".join(f"CAST(group_concat({name}, '') AS BLOB)" for name in times)
    rows = db.execute(
        f"WITH periods (at, begin, end) AS (VALUES {periods})"
        f" SELECT {', '.join(filter(None, ('at, value, model', SUMS, steps)))} FROM periods"
        " JOIN sums ON dimension = ? AND quarter >= begin AND quarter < end GROUP BY at, value, model",
        (DIMENSIONS[dimension],),
    )
    names = Texts(db)
    grouped: dict[Key, Usage] = {}
    for at, value, model, *found in rows:
        group = grouped.setdefault(key(at, names.text(value), names.text(model)), Usage())
        _add(group, found)
        for name, steps_of_requests in zip(times, found[len(SUMMED) :], strict=True):
            getattr(group, name).update(steps_of_requests)  # a byte each
    return grouped


#: The counts of several sums, as SQL.
SUMS = ", ".join(f"sum({name})" for name in SUMMED)


def _add(usage: Usage, counts: Iterable[int]) -> None:
    for name, count in zip(SUMMED, counts, strict=False):
        setattr(usage, name, getattr(usage, name) + count)


def whole(usages: Sequence[Usage]) -> Usage:
    """The sum of all."""
    total = Usage()
    _add(total, map(sum, zip(*map(counts_of, usages), strict=True)))
    for one in usages:
        total.first.update(one.first)
        total.total.update(one.total)
    return total


class Texts:
    """The texts of numbers."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[int, str] = {}

    def text(self, number: int) -> str:
        """The text of a number, "" where there is none."""
        found = self._known.get(number)
        if found is None:
            row = self._db.execute("SELECT text FROM names WHERE id = ?", (number,)).fetchone()
            found = self._known[number] = "" if row is None else str(row[0])
        return found


def kept_since(db: sqlite3.Connection) -> float | None:
    """When the oldest request ended, in seconds since 1970; None without any."""
    row = db.execute("SELECT ended FROM requests WHERE ended >= 0 ORDER BY ended LIMIT 1").fetchone()
    return None if row is None else row[0] / 1000
