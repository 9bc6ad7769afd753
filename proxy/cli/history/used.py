"""What was used in a time, by model or anything else: the rows of a report. Reads the history, writes nothing."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.cli.history.prices import Cost, Prices
from proxy.cli.history.spans import TimeSpan, edges_of, from_first
from proxy.observe.history.usage import BY, Grouped, Usage, kept_since, read_usage, whole

_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UsedRow:
    """A row of a report.

    names  a text for each of the `heads`; "" is not known. Of a period: none
    span   the period, None for another row
    cost   None without prices
    """

    names: _Key
    usage: Usage
    cost: Cost | None = None
    span: TimeSpan | None = None

    @property
    def tokens(self) -> int:
        return self.usage.input + self.usage.output


@dataclass(frozen=True, slots=True)
class UsedReport:
    """What was used in a time.

    kept_since  when the oldest request that is kept ended, None without any
    rows        the most tokens first, or every period in the order of time
    total       all of them together
    """

    by: str
    span: TimeSpan
    kept_since: float | None
    rows: Sequence[UsedRow]
    total: UsedRow

    @property
    def heads(self) -> _Key:
        return BY[self.by].heads

    def parted(self, most: int | None) -> tuple[Sequence[UsedRow], Sequence[UsedRow]]:
        """At most so many rows, those with the most tokens or the newest periods; and the rest."""
        if most is None or most >= len(self.rows):
            return self.rows, ()
        if BY[self.by].periods:
            return self.rows[-most:], self.rows[:-most]
        return self.rows[:most], self.rows[most:]


def read_report(db: sqlite3.Connection, by: str, span: TimeSpan, prices: Prices | None) -> UsedReport:
    """The report of a time. Raises ConfigError if it has too many periods."""
    grouped, first = BY[by], kept_since(db)
    part = from_first(span, first) if grouped.periods else span
    edges = edges_of(part, grouped.periods) if part.since < part.until else []
    found = read_usage(db, grouped.dimension, edges, grouped.key) if edges else {}
    costs = _costs(db, grouped, edges, prices) if prices is not None and edges else {}
    if grouped.periods:
        rows = [
            UsedRow((), found.get((str(at),), Usage()), costs.get((str(at),), _free(prices)), _period(edges, at, span))
            for at in range(len(edges) - 1)
        ]
    else:
        rows = [UsedRow(names, usage, costs.get(names)) for names, usage in found.items()]
        rows.sort(key=lambda row: (-row.tokens, row.names))
    return UsedReport(by, span, first, rows, together(rows, prices is not None))


def _period(edges: Sequence[float], at: int, span: TimeSpan) -> TimeSpan:
    return TimeSpan(edges[at], edges[at + 1], open=span.open and at == len(edges) - 2)


def _free(prices: Prices | None) -> Cost | None:
    """What no request costs."""
    return None if prices is None else Cost(0.0)


def _costs(db: sqlite3.Connection, grouped: Grouped, edges: Sequence[float], prices: Prices) -> dict[_Key, Cost]:
    """What each group cost: the prices differ by model, whatever it is grouped by."""
    found = read_usage(
        db, grouped.dimension, edges, lambda at, value, model: (grouped.key(at, value, model), model), times=()
    )
    by_group: dict[_Key, list[tuple[str, Usage]]] = defaultdict(list)
    for (key, model), usage in found.items():
        by_group[key].append((model, usage))
    return {key: prices.cost(by_model) for key, by_model in by_group.items()}


def together(rows: Sequence[UsedRow], priced: bool) -> UsedRow:
    """One row of several."""
    costs = [row.cost for row in rows if row.cost is not None]
    known = [cost.amount for cost in costs if cost.amount is not None]
    unpriced: frozenset[str] = frozenset().union(*(cost.unpriced for cost in costs))
    cost = Cost(sum(known) if known or not unpriced else None, unpriced) if priced else None
    return UsedRow((), whole([row.usage for row in rows]), cost)
