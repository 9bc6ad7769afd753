"""The whole screen as lines, from a snapshot, the view, the size and the time; and the monitor as text that is printed
once, without borders and with all rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proxy.observe.monitor.snapshot import Snapshot
from proxy.observe.monitor.terminal.cells import Line, Span, clean, fit_line, line_width, width_of
from proxy.observe.monitor.terminal.columns import columns_of, heading_line, row_line
from proxy.observe.monitor.terminal.details import detail_lines, title_of
from proxy.observe.monitor.terminal.layout import FOOTER_FROM, STRIP_FROM, Area, areas
from proxy.observe.monitor.terminal.overlays import box_of, with_box
from proxy.observe.monitor.terminal.panes import EMPTY, TITLES, boxed, pane_lines
from proxy.observe.monitor.terminal.rows import Row, name_width, rows_of
from proxy.observe.monitor.terminal.strip import allowance_lines, strip_line
from proxy.observe.monitor.terminal.view import PANES, Detail, Pane, View
from proxy.observe.monitor.words import duration

#: Keys that are named in the last line.
FOOTER = (
    ("q", "quit"),
    ("?", "help"),
    ("b", "setup"),
    ("a", "allowances"),
    ("h", "history"),
    ("↑ ↓ j k", "move"),
    ("Tab", "pane"),
    ("Enter", "open"),
    ("s", "sort"),
    ("/", "filter"),
    ("Space", "agents"),
)


def screen(snapshot: Snapshot, view: View, width: int, height: int, now: float) -> list[Line]:
    """`height` lines of `width` cells each."""
    if width < 1 or height < 1:
        return []
    strip = has_strip(snapshot, height)
    lines = [header_line(snapshot, view, width)]
    if strip:
        lines.append(strip_line(snapshot.allowances, width, now))
    rows = {pane: rows_of(pane, snapshot, view) for pane in PANES}
    for area in areas(view, height, strip, {pane: len(each) for pane, each in rows.items()}):
        lines += _area_lines(area, rows, snapshot, view, width, now)
    footer = [_footer(view, width)] if height >= FOOTER_FROM else []
    blank: Line = (Span(" " * width),)
    lines = lines[: height - len(footer)]
    lines += [blank] * (height - len(footer) - len(lines)) + footer
    box = box_of(view, snapshot, width, now)
    return lines if box is None else with_box(lines, box, view.top, width)


def has_strip(snapshot: Snapshot, height: int) -> bool:
    return bool(snapshot.allowances) and height >= STRIP_FROM


def _area_lines(
    area: Area, rows: Mapping[Pane, Sequence[Row]], snapshot: Snapshot, view: View, width: int, now: float
) -> list[Line]:
    if area.pane != "detail":
        return pane_lines(area, area.pane, rows[area.pane], name_width(snapshot), view, width, now)
    return [] if view.detail is None else _detail_area(area, view.detail, snapshot, view, width, now)


def _detail_area(area: Area, detail: Detail, snapshot: Snapshot, view: View, width: int, now: float) -> list[Line]:
    lines = detail_lines(detail, snapshot, width - 2, now)
    top = min(detail.top, max(0, len(lines) - area.inner))
    title = title_of(detail)
    if len(lines) > area.inner > 0:
        title += f" · lines {top + 1}-{top + area.inner} of {len(lines)} · PgUp PgDn"
    return boxed(area, title, lines[top:], width, view.focus in ("sessions", "active"))


def header_line(snapshot: Snapshot, view: View, width: int) -> Line:
    parts = (snapshot.url, f"uptime {duration(snapshot.uptime)}", f"sessions {len(snapshot.sessions)}")
    words = (clean(part) for part in (*parts, f"active {len(snapshot.active)}") if part)
    sandbox = (Span(" SANDBOX ", "alarm"), Span("  ", "header")) if snapshot.sandbox else ()
    named = (Span(f" {clean(snapshot.program)}  ", "name"), *sandbox, Span("  ".join(words), "header"))
    if not view.note:
        return fit_line(named, width, "header")
    note = Span(f" {clean(view.note)} ", "alarm")
    room = width - line_width((note,))
    return fit_line((*fit_line(named, room, "header"), note) if room > 0 else (note,), width, "header")


def _footer(view: View, width: int) -> Line:
    if view.typing:
        words = clean(view.words)
        while width_of(words) > max(0, width - 3):  # the end is what is being typed
            words = words[1:]
        typed = (Span(" /", "key"), Span(words), Span("▏", "key"))
        whole = (*typed, Span(_TYPING, "dim"))
        return fit_line(whole if line_width(whole) <= width else typed, width)
    found = [Span(" ")]
    for key, words in FOOTER:
        hint = [Span(key, "key"), Span(f" {'leave' if view.attached and key == 'q' else words}  ", "footer")]
        if line_width((*found, *hint)) > width + 2:  # no half of a hint; its last two blanks may be cut
            break
        found += hint
    return fit_line(_without_end(found), width)


def _without_end(runs: list[Span]) -> list[Span]:
    return [*runs[:-1], runs[-1]._replace(text=runs[-1].text.rstrip() or " ")]


_TYPING = "  Enter keep  Esc clear"


#: Rows of each list.
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
