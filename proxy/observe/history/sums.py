"""Requests added up: by quarter of an hour, by what a report can be grouped by, and by model.

The times of the requests of a sum are a byte each: the step of a scale that grows by five per cent. So a median is
exact to three per cent, and a million of them are read at once.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from operator import attrgetter
from typing import Any, Protocol

from proxy.observe.history.past_request import COUNTING, PastRequest

QUARTER_S = 900
_QUARTER_MS = QUARTER_S * 1000

#: What is added up by itself, and its number in the file.
DIMENSIONS = {"account": 0, "project": 1, "session": 2, "caller": 3}

#: The scale of times: milliseconds at its beginning, and the logarithm of its growth. It ends at half an hour.
_LEAST_MS, _GROWTH = 5.0, 0.0502
_LAST = 255


def step_of(ms: float) -> int:
    """The step of a time, 1 to 255: SQLite joins them as a text.

    >>> step_of(0), step_of(1000), step_of(10**9)
    (1, 107, 255)
    """
    return min(_LAST, 1 + round(math.log(max(ms, _LEAST_MS) / _LEAST_MS) / _GROWTH))


def ms_of(step: int) -> float:
    """The time in the middle of a step, in milliseconds.

    >>> round(ms_of(107))
    1023
    """
    return _LEAST_MS * math.exp((step - 1) * _GROWTH)


def percentile(steps: Mapping[int, int], share: float) -> float | None:
    """The time in milliseconds that `share` (0 to 1) of the requests did not exceed; None without any.

    steps  step of a time -> number of requests

    >>> round(percentile({107: 1, 121: 1, 141: 1}, 0.5)), percentile({}, 0.5)
    (2066, None)
    """
    wanted, seen = share * sum(steps.values()), 0
    for step in sorted(steps):
        seen += steps[step]
        if seen >= wanted:
            return ms_of(step)
    return None


@dataclass(slots=True)
class Counts:
    """Sums of requests.

    failed, abandoned  of the requests: answered with an error, left by the client
    fallbacks          answered by another model
    input              all input tokens; `cacheable`: of those requests whose service reports what came from its cache;
                       `cached`: what came from there
    thinking           of the output
    """

    requests: int = 0
    failed: int = 0
    abandoned: int = 0
    retries: int = 0
    fallbacks: int = 0
    input: int = 0
    cacheable: int = 0
    cached: int = 0
    output: int = 0
    thinking: int = 0
    aside: int = 0
    searches: int = 0


SUMMED = tuple(each.name for each in fields(Counts))
#: The counts in this order.
counts_of = attrgetter(*SUMMED)


@dataclass(slots=True)
class Sum:
    """Requests that are added up; `first` and `total` are steps of their times."""

    counts: Counts
    first: bytearray
    total: bytearray


#: dimension, quarter of an hour, value, model
Place = tuple[int, int, str, str]


def add_up(requests: Iterable[PastRequest]) -> dict[Place, Sum]:
    """The sums of requests. One that only counts tokens is none."""
    found: dict[Place, Sum] = {}
    for one in requests:
        if one.endpoint == COUNTING:
            continue
        quarter, model = one.ended // _QUARTER_MS, one.served or ""
        for dimension, value in enumerate((one.account, one.project, one.session, one.caller)):
            place = dimension, quarter, value or "", model
            known = found.get(place)
            if known is None:
                known = found[place] = Sum(Counts(), bytearray(), bytearray())
            _add(known, one)
    return found


def _add(known: Sum, one: PastRequest) -> None:
    counts = known.counts
    counts.requests += 1
    counts.failed += one.outcome == "failed" or (one.outcome == "completed" and (one.http or 0) >= 400)
    counts.abandoned += one.outcome == "abandoned"
    counts.retries += one.retries
    counts.fallbacks += one.fallback is not None
    counts.input += one.input or 0
    counts.cacheable += (one.input or 0) if one.cached is not None else 0
    counts.cached += one.cached or 0
    counts.output += one.output or 0
    counts.thinking += one.thinking or 0
    counts.aside += one.aside
    counts.searches += one.searches
    if one.outcome == "completed":
        known.total.append(step_of(one.total_ms))
        if one.first_ms is not None:
            known.first.append(step_of(one.first_ms))


class Numbers(Protocol):
    """The numbers of texts in the file."""

    def number(self, text: str) -> int: ...


_MORE = ", ".join(f"{name} = {name} + excluded.{name}" for name in SUMMED)
#: SQLite joins bytes as a text, whatever they are, and a cast gives them back.
_JOINED = ", ".join(f"{name} = CAST({name} || excluded.{name} AS BLOB)" for name in ("first", "total"))
_INTO = f"sums (dimension, quarter, value, model, {', '.join(SUMMED)}, first, total)"
_ADDED = f"ON CONFLICT (dimension, quarter, value, model) DO UPDATE SET {_MORE}, {_JOINED}"


def write_sums(db: sqlite3.Connection, sums: Mapping[Place, Sum], names: Numbers) -> None:
    """Adds the sums to those in the file."""
    number = names.number
    rows = [
        (dimension, quarter, number(value), number(model), *counts_of(one.counts), bytes(one.first), bytes(one.total))
        for (dimension, quarter, value, model), one in sums.items()
    ]
    insert(db, _INTO, rows, _ADDED)


#: Values of a statement.
_VALUES = 8_000


def insert(db: sqlite3.Connection, into: str, rows: Sequence[Sequence[Any]], conflict: str = "") -> None:
    """Inserts rows by few statements. Each of them releases the interpreter once and takes it back, which disturbs the
    thread that serves more than all else here.

    into      a table and its columns
    conflict  what is done with a row that is there
    """
    if not rows:
        return
    width = len(rows[0])
    row, step = f"({', '.join('?' * width)})", max(1, _VALUES // width)
    for begin in range(0, len(rows), step):
        some = rows[begin : begin + step]
        values = ", ".join([row] * len(some))
        db.execute(f"INSERT INTO {into} VALUES {values} {conflict}", [*chain.from_iterable(some)])
