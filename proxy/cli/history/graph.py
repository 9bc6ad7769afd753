"""A graph of shares over time, in text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from proxy.cli.history.spans import TimeSpan, edges_of
from proxy.core.allowances.report import FULL
from proxy.observe.monitor.terminal.times import midnight

#: Parts of a cell, from none to the whole.
_BLOCKS, _PLAIN = " ▁▂▃▄▅▆▇█", " .:#"
#: Hours between two marks of a time of at most so many days, and the fewest cells.
_HOURS, _DAYS, _LEAST = (1, 3, 6, 12), 2, 10


def graph_lines(uses: Sequence[float | None], ends: tuple[float, float], rows: int, *, blocks: bool) -> Iterator[str]:
    """The lines of a graph, a column for each use in per cent (None: unknown), over an axis of time."""
    levels = _BLOCKS if blocks else _PLAIN
    for row in reversed(range(rows)):
        label = "100%" if row == rows - 1 else "  0%" if row == 0 else ""
        cells = "".join(_cell(used, row, rows, levels) for used in uses)
        yield f"{label:4} {cells}".rstrip()
    yield " " * 5 + axis(ends, len(uses))


def _cell(used: float | None, row: int, rows: int, levels: str) -> str:
    """The part of a column in a row, counted from below; what is used at all is seen."""
    if used is None:
        return " "
    most = len(levels) - 1
    height = round(min(used, FULL) / FULL * rows * most)
    height = max(height, 1)  # also 0 per cent, which is known
    return levels[min(most, max(0, height - row * most))]


def axis(ends: tuple[float, float], columns: int) -> str:
    """Days, or hours of a short time, below the columns where they begin."""
    since, until = ends
    if until <= since:
        return ""
    line = [" "] * columns
    free = 0
    for at, text in _marks(ends, columns):
        place = int((at - since) / (until - since) * columns)
        if place >= free and place + len(text) <= columns:
            line[place : place + len(text)] = text
            free = place + len(text) + 2
    return "".join(line).rstrip()


def _marks(ends: tuple[float, float], columns: int) -> Iterator[tuple[float, str]]:
    """Moments that can be named, and their names."""
    span = TimeSpan(*ends, open=False)
    short = span.until - span.since <= _DAYS * 86_400
    if short:
        for at in edges_of(span, "hour")[:-1]:
            time = datetime.fromtimestamp(at)
            if not time.minute and time.hour % _step(span, columns) == 0:
                yield at, f"{time:%a %d}" if time.hour == 0 else f"{time:%H:%M}"
        return
    for at in edges_of(span, "day")[:-1]:
        if at == midnight(at):
            yield at, f"{datetime.fromtimestamp(at):%a %d}"


def _step(span: TimeSpan, columns: int) -> int:
    hours = (span.until - span.since) / 3600
    return next((step for step in _HOURS if columns / hours * step >= _LEAST), 24)
