"""A pane: its borders with the title, its heading and its rows."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.observe.monitor.terminal.cells import Line, Span, fit_line, line_width, width_of
from proxy.observe.monitor.terminal.columns import columns_of, heading_line, row_line
from proxy.observe.monitor.terminal.layout import Area
from proxy.observe.monitor.terminal.rows import SORTS, Row, selected, sort_of
from proxy.observe.monitor.terminal.view import Pane, View

TITLES: dict[Pane, str] = {
    "sessions": "Sessions",
    "active": "Active requests",
    "recent": "Recent requests",
    "events": "Events",
}
EMPTY: dict[Pane, str] = {
    "sessions": "No sessions",
    "active": "No active requests",
    "recent": "No recent requests",
    "events": "No events",
}
#: Panes that show their selected row without the focus, too.
ALWAYS_MARKED = frozenset({"sessions"})


def pane_lines(
    area: Area, pane: Pane, rows: Sequence[Row], named: int, view: View, width: int, now: float
) -> list[Line]:
    """The lines of a pane. `named`: cells of a session's name."""
    focus = view.focus == pane
    chosen = selected(rows, view.place(pane))
    first = first_row(chosen, len(rows), area.rows)
    title = _title(pane, view, first, area.rows, len(rows))
    inner = max(0, width - 2)
    columns = columns_of(pane, inner, named)
    marked = chosen if rows and (focus or pane in ALWAYS_MARKED) else None
    lines = [fit_line(heading_line(columns), inner, "heading")] if area.headed else []
    for index, row in enumerate(rows[first : first + area.rows], first):
        lines.append(_row(row_line(columns, row, now), inner, index == marked, focus))
    if not rows:
        lines += empty_lines(_empty(pane, view), inner, area.rows)
    return boxed(area, title, lines, width, focus)


def first_row(chosen: int, count: int, rows: int) -> int:
    """The index of the first visible row: the selected one is in the middle, where there are rows on both sides."""
    return max(0, min(chosen - rows // 2, count - rows))


def _row(line: Line, inner: int, marked: bool, focus: bool) -> Line:
    line = fit_line(line, inner)
    if not marked:
        return line
    if focus and line and line[0].text[:1] == " ":
        line = (line[0]._replace(text=">" + line[0].text[1:]), *line[1:])
    return tuple(run._replace(chosen=True) for run in line)


def _title(pane: Pane, view: View, first: int, rows: int, count: int) -> str:
    parts = [TITLES[pane]]
    if count > rows > 0:
        parts[0] += f" {first + 1}-{first + rows} of {count}"
    sort = sort_of(pane, view)
    if sort and sort != next(iter(SORTS[pane])):
        parts.append(f"by {sort}")
    if view.words:
        parts.append(f"/{view.words}")
    return " · ".join(parts)


def _empty(pane: Pane, view: View) -> str:
    return f"{EMPTY[pane]} with “{view.words}”" if view.words else EMPTY[pane]


def empty_lines(words: str, inner: int, rows: int) -> list[Line]:
    """Empty lines with the words in the middle."""
    blank = " " * max(0, (inner - width_of(words)) // 2)
    above: list[Line] = [()] * max(0, (rows - 1) // 2)
    return [*above, (Span(blank), Span(words, "dim"))]


def boxed(area: Area, title: str, lines: Sequence[Line], width: int, focus: bool) -> list[Line]:
    """The lines of an area, each of the width of the terminal."""
    role = "focus" if focus else "border"
    corners = "├┤" if area.joined else "╭╮"
    box = [edge(corners, title, width, role, "title" if focus else "heading")]
    for index in range(area.inner):
        line = lines[index] if index < len(lines) else ()
        box.append(fit_line((Span("│", role), *fit_line(line, max(0, width - 2)), Span("│", role)), width))
    if area.closed:
        box.append(edge("╰╯", "", width, role, role))
    return box[: max(0, area.height)]


def edge(corners: str, title: str, width: int, role: str, title_role: str) -> Line:
    """A border with a text in it."""
    if width < 2:
        return (Span(" " * width),) if width else ()
    named = (
        fit_line((Span(f" {title} ", title_role),), min(width_of(title) + 2, width - 2)) if title and width > 6 else ()
    )
    rest = width - 2 - line_width(named)
    return (Span(corners[0], role), *named, Span("─" * rest + corners[1], role))
