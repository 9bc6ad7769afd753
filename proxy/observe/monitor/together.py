"""The snapshots of several proxies as one: of processes that share the requests of a machine, or of replicas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

from proxy.observe.monitor.snapshot import AgentRow, AllowanceRow, Series, SessionRow, Snapshot
from proxy.observe.monitor.tracked import NO_SESSION, TOTALS, added

_COUNTS = ("active", "requests", "failures", "input_tokens", "output_tokens", "cached_tokens")
Totals = TypeVar("Totals", SessionRow, AgentRow)


def together(snapshots: Sequence[Snapshot]) -> Snapshot:
    """One snapshot of them all, which must be at least one. A session that moved is one row. Steps of series begin at
    other moments in each proxy, so sums of them are off by up to a step."""

    def rows(name: str) -> list[Any]:
        return [row for one in snapshots for row in getattr(one, name)]

    return replace(
        snapshots[0],
        started_at=min(one.started_at for one in snapshots),
        uptime=max(one.uptime for one in snapshots),
        sessions=tuple(sorted(map(_session, _by_id(rows("sessions"))), key=lambda row: row.id or NO_SESSION)),
        active=tuple(sorted(rows("active"), key=lambda row: row.started_at)),
        recent=tuple(sorted(rows("recent"), key=lambda row: row.finished_at or 0.0, reverse=True)),
        allowances=_newest(rows("allowances")),
        notices=tuple(sorted(rows("notices"), key=lambda notice: notice.at, reverse=True)),
        series=_series([one.series for one in snapshots]),
        url=", ".join(one.url for one in snapshots),
        sandbox=any(one.sandbox for one in snapshots),
    )


def _by_id(rows: Iterable[Totals]) -> list[list[Totals]]:
    """The rows of each id, in the order in which the ids come."""
    found: dict[str | None, list[Totals]] = {}
    for row in rows:
        found.setdefault(row.id, []).append(row)
    return list(found.values())


def _total(rows: Sequence[Totals]) -> Totals:
    """The sum of rows of one id; what is of the last request is that of the row that was seen last."""
    counts: dict[str, Any] = {name: sum(getattr(row, name) for row in rows) for name in _COUNTS}
    throughput = reduce(added, (row.throughput for row in rows))
    return replace(max(rows, key=lambda row: row.last_seen), throughput=throughput, **counts)


def _session(rows: Sequence[SessionRow]) -> SessionRow:
    history = _sum([row.history for row in rows])
    if not any(row.agents for row in rows):
        return replace(_total(rows), history=history)
    agents = [agent for row in rows for agent in row.agents or (_main(row),)]
    return replace(_total(rows), history=history, agents=tuple(_total(found) for found in _by_id(agents)))


def _main(row: SessionRow) -> AgentRow:
    """The main conversation of a session that has no other."""
    return AgentRow(**{**{name: getattr(row, name) for name in TOTALS}, "id": None})


def _newest(rows: Iterable[AllowanceRow]) -> tuple[AllowanceRow, ...]:
    """The newest report of each window."""
    found: dict[tuple[str, str, str], AllowanceRow] = {}
    for row in rows:
        key = row.provider, row.limit, row.window
        if key not in found or row.as_of > found[key].as_of:
            found[key] = row
    return tuple(sorted(found.values(), key=lambda row: row.provider))


def _series(all_of: Sequence[Series]) -> Series:
    names = ("tokens", "requests", "failures")
    columns: dict[str, Any] = {name: _sum([getattr(one, name) for one in all_of]) for name in names}
    return replace(all_of[0], end=max(one.end for one in all_of), **columns)


def _sum(steps: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The sums of columns whose newest step is last.

    >>> _sum([(1, 2, 3), (10,)])
    (1, 2, 13)
    """
    longest = max(map(len, steps))
    whole = [(*[0] * (longest - len(one)), *one) for one in steps]
    return tuple(map(sum, zip(*whole, strict=True)))
