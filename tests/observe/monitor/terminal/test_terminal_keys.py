"""What keys do to the view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from samples import rows

from proxy.observe.history.overview_rows import OverviewRows, UsageRow, WindowRow
from proxy.observe.monitor.snapshot import Snapshot
from proxy.observe.monitor.terminal.keys import Stage, pressed, without_sequences
from proxy.observe.monitor.terminal.view import Detail, ShownHistory, View

from .shown import MAIN, NOW, SNAPSHOT, after, request, shown

SESSION, REQUEST = Detail("session", "cursor-session"), Detail("request", "req-9")


def place(view: View) -> tuple[str | None, ...] | None:
    return view.place(view.focus).key


#: Keys -> something of the view afterwards, and what it is.
ROWS: list[tuple[str, Callable[[View], object], object]] = [
    ("tab", lambda view: view.focus, "recent"),
    ("tab tab", lambda view: view.focus, "sessions"),
    ("left", lambda view: view.focus, "recent"),
    ("right right", lambda view: view.focus, "sessions"),
    ("2", lambda view: view.focus, "active"),
    ("2 tab", lambda view: view.focus, "recent"),
    ("4 tab", lambda view: view.focus, "sessions"),
    ("down", place, ("cursor-session",)),
    ("down down down", lambda view: view.focus, "recent"),
    ("down down down up", lambda view: (view.focus, place(view)), ("sessions", (None,))),
    ("j j j j j", lambda view: (view.focus, place(view)), ("sessions", (None,))),
    ("j k k k", lambda view: (view.focus, place(view)), ("sessions", (MAIN,))),
    ("tab j", place, ("req-8",)),
    ("tab j k", place, None),
    ("tab end", place, ("req-5",)),
    ("tab end home", place, None),
    ("tab page_down", place, ("req-5",)),
    ("down enter", lambda view: view.detail, SESSION),
    ("down enter tab", lambda view: (view.detail, view.focus), (SESSION, "recent")),
    ("down enter tab enter", lambda view: view.detail, REQUEST),
    ("down enter escape", lambda view: view.detail, None),
    ("4 enter", lambda view: view.detail, REQUEST),
    ("4 j enter", lambda view: view.detail, None),  # a notice of no session
    ("space", lambda view: view.opened, frozenset({MAIN})),
    ("space space", lambda view: view.opened, frozenset()),
    ("space down enter", lambda view: view.detail, Detail("session", MAIN)),
    ("s", lambda view: view.sorts, {"sessions": "last seen"}),
    ("tab s s", lambda view: view.sorts, {"recent": "tokens"}),
    ("/ k i enter", lambda view: (view.words, view.typing), ("ki", False)),
    ("/ q y backspace", lambda view: (view.words, view.typing), ("q", True)),
    ("/ x escape", lambda view: (view.words, view.typing), ("", False)),
    ("/ x enter escape", lambda view: view.words, ""),
    ("? b escape", lambda view: view.overlays, {"setup"}),
    ("a b ? escape escape escape", lambda view: view.overlays, set()),
    ("h", lambda view: (view.overlays, view.time), ({"history"}, "7 days")),
    ("h h", lambda view: view.overlays, set()),
    ("h 1", lambda view: (view.time, view.focus), ("today", "sessions")),
    ("h 4 escape 2", lambda view: (view.time, view.focus), ("90 days", "active")),
    ("h right right right left", lambda view: (view.time, view.focus), ("30 days", "sessions")),
    ("h left left", lambda view: view.time, "today"),
    ("h ? 2 left", lambda view: (view.time, view.focus), ("7 days", "recent")),  # the help is above it
    ("b enter escape enter escape", lambda view: (view.detail, view.overlays), (None, set())),
    ("q", lambda view: view.overlays, {"quit"}),
    ("q j b enter /", lambda view: view.overlays, {"quit"}),
    ("q n", lambda view: view.overlays, set()),
    ("q q", lambda view: view.overlays, set()),
    ("q escape", lambda view: view.overlays, set()),
]


@rows("keys, read, expected", ROWS)
def test_keys(keys: str, read: Callable[[View], object], expected: object) -> None:
    view = after(" " if key == "space" else key for key in keys.split())
    assert read(view) == expected


@rows(
    "keys, view, wish",
    [
        ("q y", View(), "quit"),
        ("q", View(attached=True), "quit"),
        ("y", View(), ""),
        ("q", View(stopping=True), ""),
        ("/ q", View(), ""),
    ],
)
def test_who_wants_to_end(keys: str, view: View, wish: str) -> None:
    *before, last = keys.split()
    view = after(before, view)
    assert pressed(view, last, Stage(SNAPSHOT, 120, 40, NOW))[1] == wish


@rows(
    "typed, keys",
    [
        ("escape", "escape"),
        ("escape escape", "escape escape"),
        ("escape enter", "escape enter"),
        ("q escape up", "q escape up"),
        ("escape [ F", ""),  # End of another kind of terminal
        ("escape O F q", "q"),
        ("escape [ 1 ; 5 D j", "j"),
        ("escape [ 4 ~ escape", "escape"),
        ("escape [", ""),
        ("escape O", ""),
        ("escape x j", "j"),  # Alt and a letter
        ("escape ] 1 1 ; r g b : 0 / 0 \a j", "j"),  # an answer that came late
        ("escape ] 1 1 escape \\ j", "j"),
        ("escape P 1", ""),
    ],
)
def test_sequences_that_nobody_knows_do_nothing(typed: str, keys: str) -> None:
    assert without_sequences(typed.split()) == keys.split()


def with_newer(snapshot: Snapshot) -> Snapshot:
    """One more request has ended, and one more session has come."""
    sessions = (replace(snapshot.sessions[1], id="a-session"), *snapshot.sessions)
    return replace(snapshot, recent=(request("newer", 3, finished_at=NOW), *snapshot.recent), sessions=sessions)


@pytest.mark.parametrize("keys", ["j enter", "tab j enter", "2 j enter"])
def test_an_open_detail_and_the_selection_stay_when_others_come(keys: str) -> None:
    view = after(keys.split())
    before, later = shown(view), shown(view, with_newer(SNAPSHOT))
    assert before[2:12] == later[2:12] and "detail" in before[2]
    closed = after(["escape"], view)
    marked = [line for line in shown(closed) if line.startswith("│>")]
    assert [line[3:60] for line in shown(closed, with_newer(SNAPSHOT)) if line.startswith("│>")] == [
        line[3:60] for line in marked
    ]


def test_the_newest_request_is_selected_until_another_one_is() -> None:
    view = after(["tab"])
    assert after(["enter"], view, with_newer(SNAPSHOT)).detail == Detail("request", "newer")
    assert after(["j", "k", "enter"], view, with_newer(SNAPSHOT)).detail == Detail("request", "newer")


def test_a_selection_that_went_away_leaves_its_place() -> None:
    view = after(["tab", "j", "j"])
    fewer = replace(SNAPSHOT, recent=SNAPSHOT.recent[:2])
    assert after(["enter"], view, fewer).detail == Detail("request", "req-8")
    assert after(["enter"], view, replace(SNAPSHOT, recent=())).detail is None


def test_a_detail_scrolls_to_its_end_and_no_further() -> None:
    view = after(["tab", "j", "enter", "page_down", "page_down", "page_down", "page_up"], size=(80, 18))
    assert view.detail == Detail("request", "req-8", 2)
    assert "lines 3-" in shown(view, size=(80, 18))[2]


def test_error_and_status_come_first() -> None:
    first = shown(after(["tab", "j", "enter"]), size=(80, 24))[3:7]
    assert [line.split()[1:3] for line in first[:3]] == [
        ["status", "failed"],
        ["HTTP", "status"],
        ["error", "connection"],
    ]
    assert first[3].startswith("│" + " " * 18 + " connection"[1:])  # goes on below


def test_the_history_scrolls_to_its_end_and_begins_anew_with_another_time() -> None:
    windows = tuple(WindowRow(f"p1/{number}", "Weekly", ((NOW, 1.0),)) for number in range(40))
    rows = OverviewRows((0.0, NOW), UsageRow(1), (UsageRow(1),), windows=windows)
    view = after(["h", "end", "k", "j", "j"], View(history=ShownHistory(rows)), size=(80, 24))
    assert "PgUp" in shown(view, size=(80, 24))[-1]
    assert after(["k"], view, size=(80, 24)).top == view.top - 1
    assert after(["1"], view, size=(80, 24)).top == 0
