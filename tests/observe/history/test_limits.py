"""Allowances over time, and when one will be spent."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from observe.history.past import NOW, Written, rows, until
from proxy.observe.history.allowance_samples import SampledWindows
from proxy.observe.history.limits import UsedAt, pace, spent_at, thinned, windows
from proxy.observe.history.schema import reading
from proxy.observe.monitor.snapshot import AllowanceRow

HOUR = 3600.0
END = NOW + 5 * HOUR


def samples(*points: tuple[float, float]) -> list[UsedAt]:
    """Hours before now, per cent."""
    return [UsedAt(NOW - ago * HOUR, used, END) for ago, used in points]


@pytest.mark.parametrize(
    ("past", "hours"),
    [
        (samples((2, 10), (1, 30), (0, 50)), 2.5),  # 20 per cent an hour
        (samples((9, 0), (8, 70), (1, 80), (0.0, 90)), 1.0),  # the last hours count, not a rush of the morning
        (samples((2, 10), (1, 50)), 50 / 20),  # nothing since: the pace goes on over the hour without
        (samples((2, 10), (0, 20)), None),  # later than the reset
        (samples((2, 90), (1.5, 5), (1, 10), (0.5, 40)), 60 / (35 / 1.5)),  # it was reset in between
        (samples((1, 50)), None),
        (samples((0.1, 50), (0.0, 60)), None),  # too short a time for a pace
        (samples((2, 50), (0, 50)), None),
        (samples((1, 90), (0, 100)), None),  # spent already
        ([], None),
        ([UsedAt(NOW - HOUR, 10, None), UsedAt(NOW, 20, None)], 8.0),  # no reset is known
        ([UsedAt(NOW - HOUR, 10, NOW - 60), UsedAt(NOW - 0.5 * HOUR, 20, NOW - 60)], None),  # over
        ([UsedAt(NOW - HOUR, 10, END), UsedAt(NOW, 20, END + HOUR)], None),  # another period, whose beginning is new
    ],
)
def test_when_a_window_will_be_spent(past: list[UsedAt], hours: float | None) -> None:
    found = spent_at(past, NOW)
    assert found == (None if hours is None else pytest.approx(NOW + hours * HOUR))


@pytest.mark.parametrize(
    ("past", "an_hour"),
    [
        (samples((2, 10), (0, 30)), 10.0),
        (samples((2, 50), (0, 50)), 0.0),
        (samples((5, 50)), 0.0),  # no sample since, so nothing was used
        (samples((1, 50)), None),
        (samples((1, 90), (0, 100)), None),
    ],
)
def test_the_pace_of_the_last_hours(past: list[UsedAt], an_hour: float | None) -> None:
    found = pace(past, NOW)
    assert found == (None if an_hour is None else pytest.approx(an_hour / HOUR))


def test_few_samples_show_the_same_curve() -> None:
    many = [UsedAt(NOW + 60 * minute, (minute % 300) / 3, END) for minute in range(3000)]
    few = thinned(many, 100)
    assert len(few) <= 120 and few[-1] == many[-1]
    assert [one for one in many if math.isclose(one.used, 299 / 3)] == [one for one in few if one.used > 99.6]
    assert thinned(many[:50], 100) == many[:50]


def row(used: float, resets_at: float | None = END, **more: object) -> AllowanceRow:
    return AllowanceRow("p1", "5 hours", used, NOW, resets_at=resets_at, **more)  # type: ignore[arg-type]


def test_a_sample_is_kept_when_something_changed() -> None:
    known = SampledWindows()
    reports = [row(5), row(5), row(5, END + 31), row(6), row(6, END + HOUR), row(0, reset=True), row(6, END + HOUR)]
    assert [len(list(known.changed([report]))) for report in reports] == [1, 0, 0, 1, 1, 0, 0]


def test_samples_come_back_by_window(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as written:
        written.writer.reported([row(5), AllowanceRow("p2/work", "Weekly", 7.5, NOW, limit="Spark")])
        written.writer.reported([AllowanceRow("p1", "5 hours", 9, NOW + 60, resets_at=END)])
        until(lambda: path.exists() and rows(path, "SELECT count(*) FROM allowances") == [(3,)])
    with reading(path) as db:
        first, second = windows(db, NOW - 1, NOW + 61)
        running, endless = windows(db, NOW + 61, NOW + 100)
        assert windows(db, END, END + 60) == [endless]
        assert windows(db, END + 32 * 24 * HOUR, END + 33 * 24 * HOUR) == []
    assert (first.account, first.window, first.limit) == ("p1", "5 hours", "")
    assert first.samples == (UsedAt(NOW, 5, END), UsedAt(NOW + 60, 9, END))
    assert running.samples == first.samples[1:]  # the use at the beginning of the time
    assert endless == second
    assert second.samples == (UsedAt(NOW, 7.5, None),) and second.limit == "Spark"
