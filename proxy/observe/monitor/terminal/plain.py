"""The monitor as text that is printed once: no borders, as many lines as there are rows."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.observe.monitor.snapshot import Snapshot
from proxy.observe.monitor.terminal.cells import Line
from proxy.observe.monitor.terminal.columns import columns_of, heading_line, row_line
from proxy.observe.monitor.terminal.panes import EMPTY, TITLES
from proxy.observe.monitor.terminal.rows import name_width, rows_of
from proxy.observe.monitor.terminal.screen import header_line
from proxy.observe.monitor.terminal.strip import allowance_lines
from proxy.observe.monitor.terminal.view import PANES, Pane, View

#: Of each list.
MAX_ROWS = 50


def plain_lines(snapshot: Snapshot, width: int, now: float) -> Iterator[str]:
    """Lines of at most `width` cells."""
    view = View(opened=frozenset(row.id for row in snapshot.sessions))
    yield _text(header_line(snapshot, view, width))
    if snapshot.allowances:
        yield from ("", "Allowances", *(_text(line) for line in allowance_lines(snapshot.allowances, width, now)))
    for pane in PANES:
        yield from _pane(pane, snapshot, view, width, now)


def _pane(pane: Pane, snapshot: Snapshot, view: View, width: int, now: float) -> Iterator[str]:
    rows = rows_of(pane, snapshot, view)
    yield ""
    if not rows:
        yield EMPTY[pane]
        return
    columns = columns_of(pane, width, name_width(snapshot))
    yield TITLES[pane]
    yield _text(heading_line(columns))
    yield from (_text(row_line(columns, row, now)) for row in rows[:MAX_ROWS])


def _text(line: Line) -> str:
    return "".join(run.text for run in line).rstrip()
