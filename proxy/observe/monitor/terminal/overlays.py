"""The overlays: the keys, the set-up, the allowances, the history, the question before the end, the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.observe.monitor.snapshot import Snapshot
from proxy.observe.monitor.terminal.cells import Line, Span, fit, fit_line, laid_over, wrap
from proxy.observe.monitor.terminal.history import history_lines
from proxy.observe.monitor.terminal.panes import edge
from proxy.observe.monitor.terminal.strip import allowance_lines
from proxy.observe.monitor.terminal.view import View
from proxy.observe.monitor.words import spinner

KEYS = (
    ("q", "quit, after a question"),
    ("Ctrl-C", "quit at once; again: without waiting"),
    ("Tab ← →", "sessions / recent requests"),
    ("1 2 3 4", "sessions, active, recent, events"),
    ("↑ ↓", "move, also from pane to pane"),
    ("k / j", "previous / next row of the pane"),
    ("PgUp PgDn", "scroll the detail, or a page of rows"),
    ("Home End", "first / last"),
    ("Enter", "open the detail of the row"),
    ("Space", "show / hide the agents of a session"),
    ("s", "order of the rows: next"),
    ("/", "only rows with these words"),
    ("a", "allowances"),
    ("h", "history; 1 2 3 4 ← → its time"),
    ("b", "set-up"),
    ("?", "this help"),
    ("Esc", "close the overlay, detail, filter"),
)
#: Cells of the history, at most, and least lines, with borders.
MAX_HISTORY, LEAST_HISTORY = 200, 20
_ATTACHED = {"q": "leave; the proxy goes on", "Ctrl-C": "leave; the proxy goes on"}


@dataclass(frozen=True, slots=True)
class Box:
    """width, height  with borders; the terminal may be smaller"""

    title: str
    lines: Sequence[Line]
    width: int
    height: int
    role: str = "focus"


def box_of(view: View, snapshot: Snapshot, width: int, now: float) -> Box | None:
    """The uppermost open box."""
    if view.stopping:
        return _stopping(now)
    match view.upper:
        case "quit":
            return _question()
        case "help":
            return _help(view)
        case "setup":
            return _setup(view, width)
        case "allowances":
            return _allowances(snapshot, width, now)
        case "history":
            return _history(view, width, now)
    return None


def _question() -> Box:
    lines = (_centred("Shut down proxy?", "bold", 42), _centred("y confirm   n/Esc/q cancel", "", 42))
    return Box("", lines, 44, 5, "wait")


def _stopping(now: float) -> Box:
    lines = (
        _centred(f"{spinner(now)} Finishing running requests", "bold", 38),
        _centred("Ctrl-C ends at once", "dim", 38),
    )
    return Box("", lines, 40, 5, "wait")


def _centred(text: str, role: str, width: int) -> Line:
    return (Span(" " * ((width - len(text)) // 2)), Span(text, role))


def _help(view: View) -> Box:
    rows = [(key, _ATTACHED.get(key, words) if view.attached else words) for key, words in KEYS]
    lines = [(Span(f"  {fit(key, 10)}", "key"), Span(f" {words}")) for key, words in rows]
    return Box("Shortcuts", lines, 56, len(lines) + 2)


def _setup(view: View, width: int) -> Box:
    outer = min(84, max(4, width - 2))
    lines = [(Span(f"  {part}"),) for text in view.setup for part in wrap(text, max(1, outer - 6))]
    return Box("Setup", lines, outer, len(lines) + 2)


def _allowances(snapshot: Snapshot, width: int, now: float) -> Box:
    outer = min(84, max(4, width - 2))
    lines = allowance_lines(snapshot.allowances, outer - 2, now)
    return Box("Allowances", lines, outer, len(lines) + 2)


def _history(view: View, width: int, now: float) -> Box:
    """Keeps its least height while there is little to show, so that it does not jump when the answer comes."""
    outer = min(MAX_HISTORY, max(4, width))
    lines = history_lines(view, outer - 2, now)
    return Box(f"History · {view.time}", lines, outer, max(len(lines) + 2, LEAST_HISTORY))


def scrollable(box: Box, height: int) -> int:
    """The number of lines by which it can be scrolled."""
    return max(0, len(box.lines) - max(0, min(box.height, height) - 2))


def with_box(lines: list[Line], box: Box, top: int, width: int) -> list[Line]:
    """The screen with the box in its middle."""
    across, down = min(box.width, width), min(box.height, len(lines))
    if across < 4 or down < 3:
        return lines
    left, upper = (width - across) // 2, (len(lines) - down) // 2
    found = list(lines)
    for index, line in enumerate(_box_lines(box, top, across, down)):
        found[upper + index] = laid_over(found[upper + index], line, left)
    return found


def _box_lines(box: Box, top: int, across: int, down: int) -> list[Line]:
    inner = down - 2
    top = min(top, max(0, len(box.lines) - inner))
    below = len(box.lines) - top - inner
    body = box.lines[top : top + inner]
    found = [edge("╭╮", box.title, across, box.role, "title")]
    for index in range(inner):
        text = fit_line(body[index] if index < len(body) else (), across - 2)
        found.append((Span("│", box.role), *text, Span("│", box.role)))
    more = f"PgDn: {below} more" if below > 0 else "PgUp" if top else ""
    return [*found, edge("╰╯", more, across, box.role, "dim")]
