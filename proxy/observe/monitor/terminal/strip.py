"""The allowances: a line below the header, and an overlay with the details."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from proxy.observe.monitor.snapshot import AllowanceRow
from proxy.observe.monitor.terminal.cells import Line, Span, clean, cut, fit, fit_line, line_width
from proxy.observe.monitor.words import age, bar, duration, moment, percent, window

#: Per cent at which a window is shown as a warning, and as used up.
WARN_AT, BAD_AT = 80.0, 95.0
#: Older reports of a provider are shown as old, in seconds.
OLD_S = 3_600.0


class StripForm(NamedTuple):
    """The parts of a window that the line shows.

    bar     cells of its bar
    resets  per cent at which its reset is shown
    worst   only the most used window of each provider
    """

    bar: int
    resets: float
    worst: bool = False


#: The first that fits is taken, else the last.
FORMS = (
    StripForm(8, 0.0),
    StripForm(4, 0.0),
    StripForm(0, 0.0),
    StripForm(0, WARN_AT),
    StripForm(0, math.inf),
    StripForm(0, WARN_AT, worst=True),
    StripForm(0, math.inf, worst=True),
)
#: Letters of a limit, in the line.
LIMIT_WIDTH = 10


def strip_line(rows: Sequence[AllowanceRow], width: int, now: float) -> Line:
    """All windows in one line, cut to the width."""
    line: Line = ()
    for form in FORMS:
        line = _line(rows, form, now)
        if line_width(line) <= width:
            break
    return fit_line(line, width)


def _line(rows: Sequence[AllowanceRow], form: StripForm, now: float) -> Line:
    found: list[Span] = []
    for provider, windows in groupby(rows, key=lambda row: row.provider):
        found.append(Span(f"{' ' if not found else '  '}{cut(clean(provider), 8)}", "bold"))
        for row in [max(windows, key=lambda row: row.used)] if form.worst else windows:
            found += _window(row, form, now)
    return tuple(found)


def _window(row: AllowanceRow, form: StripForm, now: float) -> list[Span]:
    name = cut(clean(row.limit), LIMIT_WIDTH) + " " if row.limit else ""
    role = role_of(row, now)
    found = [Span(f" {name}{cut(clean(window(row.window)), LIMIT_WIDTH)} ", "dim")]
    if form.bar:
        found.append(Span(bar(row.used, form.bar) + " ", role))
    found.append(Span(used(row), role))
    if row.used >= form.resets and row.resets_at is not None and row.resets_at > now:
        found.append(Span(f" ↻{duration(row.resets_at - now)}", "dim"))
    return found


def used(row: AllowanceRow) -> str:
    """The used per cent; unknown after a reset."""
    return "-" if row.reset else percent(min(max(row.used, 0.0), 999.0))


def role_of(row: AllowanceRow, now: float) -> str:
    if is_over(row, now):
        return "dim"
    return "bad" if row.used >= BAD_AT else "wait" if row.used >= WARN_AT else "good"


def is_over(row: AllowanceRow, now: float) -> bool:
    """Whether the reported window has ended."""
    return row.reset or (row.resets_at is not None and row.resets_at <= now)


def allowance_lines(rows: Sequence[AllowanceRow], width: int, now: float) -> list[Line]:
    """A line a window: provider, window, bar, per cent, reset, and how old that is."""
    if not rows:
        return [(Span(" No provider has reported an allowance yet.", "dim"),)]
    named = min(max(4, *(len(row.provider) for row in rows)), 16)
    return [fit_line(_row(row, now, named), width) for row in rows]


def _row(row: AllowanceRow, now: float, named: int) -> Line:
    """`named`: columns of the provider, with its account."""
    role = role_of(row, now)
    reset = "reset since" if row.reset else "" if row.resets_at is None else _reset(row.resets_at, now)
    past = max(0.0, now - row.as_of)
    old = "wait" if past > OLD_S else "dim"
    return (
        Span(f" {fit(row.provider, named)} ", "bold"),
        Span(fit(" ".join(part for part in (row.limit, row.window) if part), 18)),
        Span(f" {bar(row.used, 10)} ", role),
        Span(fit(used(row), 4, right=True), role),
        Span(f"  {fit(reset, 25)}"),
        Span(f" {age(past)}", old),
    )


def _reset(at: float, now: float) -> str:
    return f"resets in {duration(at - now)}" if at > now else f"was reset {moment(at, now)}"
