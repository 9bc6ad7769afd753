"""What is known of the windows of allowances in a time, and how it is drawn."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples import rows

from proxy.observe.history.limits import UsedAt, curve, windows
from proxy.observe.history.overview import MAX_SAMPLES, overview
from proxy.observe.history.schema import FILE_NAME, Names, connect, transaction

NOW = 1_800_000_000.0
HOUR = 3600.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    opened = connect(tmp_path / FILE_NAME)
    yield opened
    opened.close()


def keep(db: sqlite3.Connection, window: str, *samples: tuple[float, float, float | None], account: str = "p1") -> None:
    """Samples: hours since `NOW`, per cent, hours of the reset."""
    with transaction(db):
        number = Names(db).number
        place = number(account), number(window), number("")
        times = [(1000 * (NOW + at * HOUR), used, end and 1000 * (NOW + end * HOUR)) for at, used, end in samples]
        db.executemany("INSERT INTO allowances VALUES (?, ?, ?, ?, ?, ?)", [(*place, *one) for one in times])


def used(db: sqlite3.Connection, since: float, until: float, steps: int = 0) -> dict[str, list[float]]:
    found = windows(db, NOW + since * HOUR, NOW + until * HOUR, steps)
    return {one.window: [sample.used for sample in one.samples] for one in found}


def test_what_held_before_a_time_is_known_in_it(db: sqlite3.Connection) -> None:
    keep(db, "week", (-30, 10, 100), (-20, 20, 100), (-1, 30, 100))
    keep(db, "5 hours", (-30, 70, -25))  # over before the time
    keep(db, "month", (-30, 5, None))
    assert used(db, -10, 0) == {"week": [20, 30], "month": [5]}
    assert used(db, -10, -5) == {"week": [20], "month": [5]}
    assert used(db, -40, -29) == {"week": [10], "5 hours": [70], "month": [5]}
    assert used(db, -60, -40) == {}


def test_of_many_samples_the_highest_and_the_last_of_each_step_are_left(db: sqlite3.Connection) -> None:
    keep(db, "5 hours", *[(at / 10, at % 37, 99) for at in range(1000)])
    kept = used(db, 0, 100, 10)["5 hours"]
    assert 20 <= len(kept) <= 22 and kept.count(36) >= 10 and kept[-1] == 999 % 37
    assert len(used(db, 0, 100)["5 hours"]) == 1000


@rows(
    "samples, now, points",
    [
        ([(0, 40, 5), (1, 60, 5)], 2, [(0, 40), (1, 60)]),
        ([(0, 40, 5), (1, 60, 5)], 7, [(0, 40), (1, 60), (5, 0)]),
        ([(0, 40, 5), (6, 10, 11)], 7, [(0, 40), (5, 0), (6, 10)]),
        ([(0, 40, 5), (5, 0, 10)], 7, [(0, 40), (5, 0)]),  # the next period was reported at once
        ([(6, 40, 5), (7, 50, None)], 9, [(6, 40), (7, 50)]),  # an end in the past says nothing
    ],
)
def test_a_period_that_ended_leaves_no_use(
    samples: list[tuple[float, float, float | None]], now: float, points: list[tuple[float, float]]
) -> None:
    assert [(one.at, one.used) for one in curve([UsedAt(*one) for one in samples], now)] == points


def test_an_overview_has_few_points_and_the_pace_of_all(db: sqlite3.Connection) -> None:
    keep(db, "week", *[(at / 60, 50 + at / 60, 9) for at in range(-2400, 1)], (-60, 1, 9))  # one per cent an hour
    keep(db, "5 hours", *[(at / 60, 90 + at / 60, 9) for at in range(-120, 1)], account="p2/work")
    week, hours = overview(db, [NOW - 40 * HOUR, NOW], NOW + 1)["windows"]
    assert (week["account"], week["window"], week["limit"]) == ("p1", "week", "")
    assert 100 < len(week["samples"]) <= MAX_SAMPLES
    assert week["samples"][0] == (NOW - 60 * HOUR, 1) and week["samples"][-1] == (NOW, 50)
    assert (week["resets_at"], week["spent_at"]) == (NOW + 9 * HOUR, None)
    assert hours["spent_at"] is None
    keep(db, "5 hours", (0.01, 95, 9), account="p2/work")
    hours = overview(db, [NOW, NOW + HOUR], NOW + 36)["windows"][1]  # what came before the time counts for the pace
    assert hours["spent_at"] == pytest.approx(NOW + 36 + 5 / (7 / 2.01) * HOUR)
