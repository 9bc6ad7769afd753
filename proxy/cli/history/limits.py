"""`report limits`: the windows of the allowances over time, and when each will be spent."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.cli.history.documents import VERSION, csv_text, span_json
from proxy.cli.history.graph import graph_lines
from proxy.cli.history.spans import TimeSpan, iso_text, short_text
from proxy.cli.history.tables import own_line
from proxy.cli.history.used_table import title_of
from proxy.cli.usage import Terminal
from proxy.core.allowances.report import FULL
from proxy.core.allowances.words import FRESH_S, age_text, wait_text
from proxy.observe.history.limits import PACE_S, UsedAt, WindowPast, curve, pace, spent_at, windows
from proxy.observe.monitor.terminal.cells import wrap

#: Rows of a graph, and most of its columns.
ROWS, MOST_COLUMNS = 4, 100
#: Cells to the left of a graph: `100% `.
_MARGIN = 5
_PACE = f"the last {PACE_S / 3600:.0f} hours"


@dataclass(frozen=True, slots=True)
class LimitReport:
    """The windows with a sample in a time, or that still counted then. `now`: seconds since 1970."""

    span: TimeSpan
    now: float
    windows: Sequence[WindowPast]


def read_limits(db: sqlite3.Connection, span: TimeSpan, now: float) -> LimitReport:
    """The windows of a time."""
    return LimitReport(span, now, windows(db, span.since, span.until))


def limit_lines(report: LimitReport, terminal: Terminal) -> list[str]:
    """A graph for each window, its use, and what will come of it."""
    lines = title_of(report.span, terminal)
    for one in report.windows:
        lines += ["", *_window(one, report, terminal)]
    return lines if report.windows else [*lines, "", "no allowance was reported"]


def _window(past: WindowPast, report: LimitReport, terminal: Terminal) -> Iterator[str]:
    title = f"{past.limit}, {past.window}" if past.limit else past.window
    yield own_line(f"{past.account}: {title}", terminal)
    columns = max(1, min(MOST_COLUMNS, terminal.columns - _MARGIN))
    end = min(report.span.until, max(report.now, report.span.since))
    uses = used_in(past.samples, report.span.since, end, columns)
    yield from graph_lines(uses, (report.span.since, end), ROWS, blocks=terminal.blocks)
    for words in _words(past, report):
        yield from wrap(words, terminal.columns)


def used_in(samples: Sequence[UsedAt], since: float, until: float, columns: int) -> list[float | None]:
    """The highest use in each of some equal parts of a time, in per cent; None before the first sample."""
    points = curve(samples, until) if samples else []
    times = [one.at for one in points]
    found: list[float | None] = []
    for number in range(columns):
        begin, end = (since + (until - since) * (number + more) / columns for more in (0, 1))
        first = max(0, bisect_right(times, begin) - 1)  # goes on when the part begins
        found.append(max((one.used for one in points[first : bisect_left(times, end)]), default=None))
    return found


def _words(past: WindowPast, report: LimitReport) -> Iterator[str]:
    """Use and reset, and when it will be spent."""
    last, now = past.samples[-1], report.now
    if not report.span.open:
        yield f"{last.used:g}% used at the end of this time"
        return
    if last.resets_at is not None and last.resets_at <= now:
        yield f"began again {short_text(last.resets_at, now)}; {last.used:g}% was used before"
        return
    old = f" as of {age_text(now - last.at)}" if now - last.at > FRESH_S else ""
    resets = "" if last.resets_at is None else f", resets {_when(last.resets_at, now)}"
    yield f"{last.used:g}% used{old}{resets}"
    if (words := _outlook(past.samples, now)) is not None:
        yield words


def _outlook(samples: Sequence[UsedAt], now: float) -> str | None:
    """When it will be spent; None if that needs no words."""
    last, end, a_second = samples[-1], spent_at(samples, now), pace(samples, now)
    if last.used >= FULL:
        return None
    if end is not None:
        return f"at the pace of {_PACE} it will be spent {_when(end, now)}"
    if a_second is None:
        return "no pace is known yet"
    return f"at the pace of {_PACE} it lasts until its reset" if a_second else f"nothing was used in {_PACE}"


def _when(at: float, now: float) -> str:
    return f"{short_text(at, now)} (in {wait_text(at - now)})"


def limits_json(report: LimitReport) -> dict[str, Any]:
    """
    {"version": 1, "report": "limits", "since": "…", "until": "…", "windows": [{"account": "p1", "window": "5 hours",
     "limit": "", "used": 62.5, "as_of": "…", "resets_at": "…", "spent_at": null, "samples": [["…", 12.5], …]}]}

    `spent_at`: null as well if it is not before the reset.
    """
    return {
        "version": VERSION,
        "report": "limits",
        **span_json(report.span),
        "windows": [_window_json(one, report.now) for one in report.windows],
    }


def _window_json(past: WindowPast, now: float) -> dict[str, Any]:
    last, end = past.samples[-1], spent_at(past.samples, now)
    return {
        "account": past.account,
        "window": past.window,
        "limit": past.limit,
        "used": last.used,
        "as_of": iso_text(last.at),
        "resets_at": _iso(last.resets_at),
        "spent_at": _iso(end),
        "samples": [[iso_text(one.at), one.used] for one in past.samples],
    }


def _iso(at: float | None) -> str | None:
    return None if at is None else iso_text(at)


def limits_csv(report: LimitReport) -> str:
    """A row for each sample."""
    rows = [
        {
            "account": past.account,
            "window": past.window,
            "limit": past.limit,
            "at": iso_text(one.at),
            "used": one.used,
            "resets_at": _iso(one.resets_at),
        }
        for past in report.windows
        for one in past.samples
    ]
    return csv_text(rows, ("account", "window", "limit", "at", "used", "resets_at"))
