"""Which rows a pane has."""

from __future__ import annotations

import dataclasses

import pytest
from samples import rows

from proxy.observe.monitor.snapshot import AllowanceRow, CacheView, Notice, SessionRow, Snapshot
from proxy.observe.monitor.terminal.layout import areas
from proxy.observe.monitor.terminal.rows import rows_of
from proxy.observe.monitor.terminal.strip import allowance_lines, strip_line
from proxy.observe.monitor.terminal.view import Pane, View

from .shown import NOW, SNAPSHOT, request, shown

_NOTICE = Notice(NOW, "warn", "0 % of the input came from the cache: the system text changed", "p1", "one")


@pytest.mark.parametrize(
    ("notice", "expected", "messages"),
    [
        (_NOTICE, 0.0, ["0% of the input from the cache: the system text changed"]),
        (_NOTICE, 0.9, ["0% of the input from the cache, 90% expected: the system text changed"]),
        (
            dataclasses.replace(_NOTICE, session="two"),
            0.0,
            ["0% of the input from the cache: the system text changed", _NOTICE.message],
        ),
    ],
    ids=["nothing was to be expected", "more was to be expected", "of another session"],
)
def test_a_cache_that_was_lost_is_one_event(notice: Notice, expected: float, messages: list[str]) -> None:
    lost = request("1", 0, session="one", cache=CacheView(0.0, expected, "the system text changed"))
    rows = rows_of("events", Snapshot(NOW, NOW, 0.0, recent=(lost,), notices=(notice,)), View())
    assert [row.message for row in rows] == messages


def sessions(*ids: str, **more: int) -> Snapshot:
    rows = tuple(SessionRow(id, NOW, project=f"project-{index}", **more) for index, id in enumerate(ids))
    return dataclasses.replace(SNAPSHOT, sessions=rows)


@rows("width", [60, 80, 100, 120, 200])
def test_failures_of_a_session_are_never_cut(width: int) -> None:
    lines = shown(View(), sessions("one", active=123, requests=45_678, failures=987), (width, 40))
    row = next(line for line in lines if "one" in line.split()[0] + line.split()[1])
    assert width < 76 or "987" in row  # a narrower screen has no counts


#: As of one minute, in the order of time.
ALIKE = ("019a1b2c-3d4e-7abc-8def-0123456789ab", "019a1b2c-3d5f-7abc-8def-0123456789ab")


@rows(
    "ids, width, names",
    [
        (ALIKE, 200, ["019a1b2c-3d4…", "019a1b2c-3d5…"]),
        (ALIKE, 100, ["019a1b2c-3d4…", "019a1b2c-3d5…"]),
        (ALIKE, 120, ["019a1b2c", "019a1b2c"]),  # no room
        ((ALIKE[0], "57c7c914-6f0e-4b6e-9d6c-3f0f7a1c2b9d"), 200, ["019a1b2c", "57c7c914"]),
        (("session-of-anna-1", "session-of-anna-2", "x"), 200, ["session-of-anna-1", "session-of-anna-2", "x"]),
        (("session-1", "session-10", "session-2"), 200, ["session-1", "session-10", "session-2"]),
    ],
)
def test_ids_that_look_alike_have_more_characters(ids: tuple[str, ...], width: int, names: list[str]) -> None:
    lines = shown(View(), sessions(*ids), (width, 40))
    assert [line.strip("│> ").split()[0] for line in lines if "project-" in line] == names


def test_requests_are_told_apart_as_their_sessions() -> None:
    known = dataclasses.replace(sessions(*ALIKE), recent=tuple(request(id, 9, session=id, http=200) for id in ALIKE))
    pane = "\n".join(shown(View(), known, (200, 40))).partition("Recent requests")[2]
    assert "019a1b2c-3d4…" in pane and "019a1b2c-3d5…" in pane


@rows(
    "counts, rows",
    [
        ((8, 5, 6, 6), (8, 5, 6, 6)),  # all have what they need
        ((3, 0, 2, 2), (8, 5, 6, 6)),  # nobody needs more: the borders stay
        ((3, 0, 200, 6), (3, 2, 14, 6)),
        ((3, 1, 200, 50), (3, 2, 10, 10)),
        ((20, 9, 9, 0), (9, 6, 8, 2)),
        ((8, 5, 8, 6), (8, 5, 6, 6)),
    ],
)
def test_rows_that_are_left_go_to_panes_that_scroll(counts: tuple[int, ...], rows: tuple[int, ...]) -> None:
    panes: tuple[Pane, ...] = ("sessions", "active", "recent", "events")
    known = dict(zip(panes, counts, strict=True))
    assert tuple(area.rows for area in areas(View(), 40, True, known)) == rows


NOW = 1_795_180_000.0


def test_a_window_that_has_begun_again_is_not_shown_as_unused() -> None:
    rows = [AllowanceRow("p2", "Weekly", 0.0, NOW - 7_200, reset=True)]
    line = "".join(run.text for run in allowance_lines(rows, 100, NOW)[0])
    assert "reset since" in line and "0%" not in line
    assert "0%" not in "".join(run.text for run in strip_line(rows, 100, NOW))
