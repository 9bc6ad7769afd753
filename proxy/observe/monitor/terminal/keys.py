"""The effect of each key: a view and a key give a new view and an action."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from proxy.observe.monitor.snapshot import RequestRow, Snapshot
from proxy.observe.monitor.terminal.details import detail_lines
from proxy.observe.monitor.terminal.layout import Area, areas, visible
from proxy.observe.monitor.terminal.overlays import box_of, scrollable
from proxy.observe.monitor.terminal.rows import (
    SORTS,
    EventLine,
    Row,
    SessionLine,
    key_of,
    rows_of,
    selected,
    sort_of,
)
from proxy.observe.monitor.terminal.screen import has_strip
from proxy.observe.monitor.terminal.times import TIMES, Time, neighbour
from proxy.observe.monitor.terminal.view import PANES, Detail, Overlay, Pane, Selection, View

#: Actions of the program: none, end, or end at once.
Wish = Literal["", "quit"]

MAX_WORDS = 60


@dataclass(frozen=True, slots=True)
class Stage:
    """The context of a key."""

    snapshot: Snapshot
    width: int
    height: int
    now: float


def pressed(view: View, key: str, stage: Stage) -> tuple[View, Wish]:
    """`key` is a character, or a name: up, down, left, right, tab, enter, escape, backspace, page_up, page_down, home,
    end. Others do nothing."""
    if view.stopping:
        return view, ""
    if view.upper == "quit":
        return _answered(view, key)
    if view.typing:
        return _typed(view, key), ""
    if key == "q":
        return (view, "quit") if view.attached else (_with(view, "quit"), "")
    if view.overlays and key in _SCROLLS:
        return _scrolled_overlay(view, _SCROLLS[key], stage), ""
    action = (_HISTORY_KEYS.get(key) if view.upper == "history" else None) or _KEYS.get(key)
    return (view if action is None else action(view, stage)), ""


def without_sequences(keys: Sequence[str]) -> list[str]:
    """Drops unknown escape sequences: keys of another kind of terminal, Alt and a letter, late answers. Escape is a key
    when it comes alone or before a named key.

    >>> without_sequences(["escape", "[", "4", "~", "q"]), without_sequences(["escape", "O", "F", "escape"])
    (['q'], ['escape'])
    """
    found, left = [], list(keys)
    while left:
        key = left.pop(0)
        if key == "escape" and left and len(left[0]) == 1:
            _take_sequence(left)
        else:
            found.append(key)
    return found


def _take_sequence(left: list[str]) -> None:
    """Removes the rest of an escape sequence, in the forms of ECMA-48."""
    kind = left.pop(0)
    if kind == "O":  # one letter
        del left[:1]
    elif kind == "[":  # parameters, and a letter
        while left and len(left[0]) == 1 and not "@" <= left.pop(0) <= "~":
            pass
    elif kind in "]P^_X":  # a text that ends with BEL, or with Escape and a backslash
        ended = ""
        while left and ended not in ("\x07", "escape"):
            ended = left.pop(0)
        if ended == "escape" and left[:1] == ["\\"]:
            del left[0]


def _answered(view: View, key: str) -> tuple[View, Wish]:
    """Handles the answer to "shut down?"."""
    if key in ("y", "Y"):
        return _without(view, "quit"), "quit"
    return (_without(view, "quit") if key in ("n", "N", "q", "escape") else view), ""


def _typed(view: View, key: str) -> View:
    """Edits the filter's words."""
    if key in ("enter", "escape"):
        return replace(view, typing=False, words=view.words.strip() if key == "enter" else "")
    if key == "backspace":
        return replace(view, words=view.words[:-1])
    fits = len(key) == 1 and key.isprintable() and len(view.words) < MAX_WORDS
    return replace(view, words=view.words + key) if fits else view


# Overlays.


def _with(view: View, overlay: Overlay) -> View:
    return replace(view, overlays=view.overlays | {overlay}, top=0)


def _without(view: View, overlay: Overlay) -> View:
    return replace(view, overlays=view.overlays - {overlay}, top=0)


def _toggle(overlay: Overlay) -> Callable[[View, Stage], View]:
    return lambda view, _stage: (_without if overlay in view.overlays else _with)(view, overlay)


def _scrolled_overlay(view: View, step: int, stage: Stage) -> View:
    box = box_of(view, stage.snapshot, stage.width, stage.now)
    most = 0 if box is None else scrollable(box, stage.height)
    return replace(view, top=max(0, min(view.top + step, most)))


def _closed(view: View, _stage: Stage) -> View:
    """Closes the upper overlay, the detail, or the filter, in this order."""
    if view.upper is not None:
        return _without(view, view.upper)
    if view.detail is not None:
        return replace(view, detail=None)
    return replace(view, words="")


def _timed(time: Time) -> Callable[[View, Stage], View]:
    return lambda view, _stage: replace(view, time=time, top=0)


def _time_step(by: int) -> Callable[[View, Stage], View]:
    return lambda view, _stage: replace(view, time=neighbour(view.time, by), top=0)


# The focus, and the selected row.


def _other_pane(view: View, stage: Stage) -> View:
    return _focused(view, "recent" if view.focus in ("sessions", "active") else "sessions", stage)


def _to_pane(pane: Pane) -> Callable[[View, Stage], View]:
    return lambda view, stage: _focused(view, pane, stage)


def _focused(view: View, pane: Pane, stage: Stage) -> View:
    """Moves the focus; a screen for one pane shows the one with the focus."""
    panes = visible(pane, stage.height)
    return replace(view, focus=pane) if pane in panes else view


def _step(by: int, across: bool) -> Callable[[View, Stage], View]:
    """Moves a row up or down; `across`: past the end into the next pane. Scrolls an open detail that has the focus."""

    def step(view: View, stage: Stage) -> View:
        if view.detail is not None and view.focus in ("sessions", "active"):
            return _scrolled(view, by, stage)
        rows = rows_of(view.focus, stage.snapshot, view)
        index = selected(rows, view.place(view.focus)) + by
        if across and not 0 <= index < len(rows):
            return _across(view, by, stage)
        return _placed(view, view.focus, rows, index)

    return step


#: Where Up and Down lead past the first and the last row.
_NEIGHBOURS: Mapping[tuple[Pane, int], Pane] = {
    ("sessions", 1): "recent",
    ("active", 1): "recent",
    ("active", -1): "sessions",
    ("recent", -1): "sessions",
    ("recent", 1): "events",
    ("events", -1): "recent",
}


def _across(view: View, by: int, stage: Stage) -> View:
    pane = _NEIGHBOURS.get((view.focus, by))
    moved = view if pane is None else _focused(view, pane, stage)
    if moved.focus == view.focus:
        return view
    rows = rows_of(moved.focus, stage.snapshot, moved)
    return _placed(moved, moved.focus, rows, 0 if by > 0 else len(rows) - 1)


def _placed(view: View, pane: Pane, rows: Sequence[Row], index: int) -> View:
    """Selects a row. The first one is selected by position: a new first row is selected then."""
    index = max(0, min(index, len(rows) - 1))
    held = rows and (index or pane == "sessions")
    place = Selection(key_of(rows[index]), index) if held else Selection()
    return replace(view, places=MappingProxyType({**view.places, pane: place}))


def _page(by: int) -> Callable[[View, Stage], View]:
    def turn(view: View, stage: Stage) -> View:
        if view.detail is not None:
            area = _area_of("detail", view, stage)
            return _scrolled(view, by * max(1, area.inner - 1 if area else 1), stage)
        area = _area_of(view.focus, view, stage)
        rows = rows_of(view.focus, stage.snapshot, view)
        index = selected(rows, view.place(view.focus)) + by * max(1, area.rows if area else 1)
        return _placed(view, view.focus, rows, index)

    return turn


def _far(by: int) -> Callable[[View, Stage], View]:
    def far(view: View, stage: Stage) -> View:
        if view.detail is not None and view.focus in ("sessions", "active"):
            return _scrolled(view, by, stage)
        rows = rows_of(view.focus, stage.snapshot, view)
        return _placed(view, view.focus, rows, by)

    return far


def _area_of(pane: str, view: View, stage: Stage) -> Area | None:
    counts = {each: len(rows_of(each, stage.snapshot, view)) for each in PANES}
    found = areas(view, stage.height, has_strip(stage.snapshot, stage.height), counts)
    return next((area for area in found if area.pane == pane), None)


def _scrolled(view: View, by: int, stage: Stage) -> View:
    """Scrolls the detail by `lines`."""
    area = _area_of("detail", view, stage)
    if view.detail is None or area is None:
        return view
    count = len(detail_lines(view.detail, stage.snapshot, stage.width - 2, stage.now))
    top = max(0, min(view.detail.top + by, count - area.inner))
    return replace(view, detail=replace(view.detail, top=top))


# What is shown.


def _open(view: View, stage: Stage) -> View:
    rows = rows_of(view.focus, stage.snapshot, view)
    if view.overlays or not rows:
        return view
    detail = _detail_of(rows[selected(rows, view.place(view.focus))])
    return view if detail is None else replace(view, detail=detail)


def _detail_of(row: Row) -> Detail | None:
    match row:
        case SessionLine():
            return Detail("session", row.session.id)
        case RequestRow():
            return Detail("request", row.id)
        case EventLine(request=None, session=None):
            return None
        case EventLine(request=None):
            return Detail("session", row.session)
    return Detail("request", row.request)


def _agents(view: View, stage: Stage) -> View:
    """Shows or hides the agents of the selected session."""
    rows = rows_of("sessions", stage.snapshot, view)
    if view.focus != "sessions" or not rows:
        return view
    row = rows[selected(rows, view.place("sessions"))]
    opened = view.opened ^ {row.session.id}
    places = MappingProxyType({**view.places, "sessions": Selection((row.session.id,), rows.index(row))})
    return replace(view, opened=opened, places=places)


def _sorted(view: View, _stage: Stage) -> View:
    """Sorts the focused pane, or the sessions, by the next order."""
    pane: Pane = view.focus if view.focus in SORTS else "sessions"
    names = list(SORTS[pane])
    name = names[(names.index(sort_of(pane, view)) + 1) % len(names)]
    return replace(view, sorts=MappingProxyType({**view.sorts, pane: name}))


def _filter(view: View, _stage: Stage) -> View:
    return replace(view, typing=True, overlays=frozenset())


_SCROLLS = {"up": -1, "k": -1, "down": 1, "j": 1, "page_up": -10, "page_down": 10, "home": -10_000, "end": 10_000}

_KEYS: Mapping[str, Callable[[View, Stage], View]] = {
    "tab": _other_pane,
    "left": _other_pane,
    "right": _other_pane,
    **{str(index): _to_pane(pane) for index, pane in enumerate(PANES, 1)},
    "up": _step(-1, across=True),
    "down": _step(1, across=True),
    "k": _step(-1, across=False),
    "j": _step(1, across=False),
    "page_up": _page(-1),
    "page_down": _page(1),
    "home": _far(-10_000),
    "end": _far(10_000),
    "enter": _open,
    " ": _agents,
    "s": _sorted,
    "/": _filter,
    "a": _toggle("allowances"),
    "h": _toggle("history"),
    "b": _toggle("setup"),
    "?": _toggle("help"),
    "escape": _closed,
}

#: While the history is uppermost.
_HISTORY_KEYS: Mapping[str, Callable[[View, Stage], View]] = {
    "left": _time_step(-1),
    "right": _time_step(1),
    **{str(index): _timed(time) for index, time in enumerate(TIMES, 1)},
}
