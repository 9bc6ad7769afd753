"""The simulated history: the same moment makes the same, and every column has something to show."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from samples import rows

from proxy.observe.history.demo import DAYS, requests, samples, write_demo
from proxy.observe.history.overview import overview
from proxy.observe.history.past_request import COLUMNS, PastRequest
from proxy.observe.history.schema import reading
from proxy.observe.monitor.demo import Demo

NOON = 1_787_140_800.0  # 2026-08-19T12:00:00Z, a Wednesday
NIGHT = NOON + 3.6 * 86_400  # of a Saturday


@pytest.fixture(scope="module")
def past() -> list[PastRequest]:
    return requests(NOON)


def test_the_same_moment_makes_the_same(past: list[PastRequest]) -> None:
    assert past == requests(NOON)
    assert samples(past, NOON) == samples(past, NOON)
    assert len({one.request for one in past}) == len(past)


def test_the_requests_are_those_of_the_days_until_now(past: list[PastRequest]) -> None:
    ends = [one.ended for one in past]
    assert ends == sorted(ends) and ends[-1] <= 1000 * NOON
    days = Counter(datetime.fromtimestamp(end / 1000).date() for end in ends)
    assert len(days) == DAYS
    weekend = [count for day, count in days.items() if day.weekday() > 4]
    assert max(weekend) < sum(days.values()) / len(days)


def test_there_is_something_of_everything(past: list[PastRequest]) -> None:
    for name in COLUMNS:
        assert any(getattr(one, name) for one in past), name
        assert len({getattr(one, name) for one in past}) > 1, name
    assert {one.outcome for one in past} == {"completed", "failed", "abandoned"}
    assert {one.account for one in past} == {"p1", "p2", "p3", "p4", "p5", None}
    failures = Counter(datetime.fromtimestamp(one.ended / 1000).date() for one in past if one.http == 529)
    (_, worst), (_, next_worst) = failures.most_common(2)
    assert worst > 2 * next_worst


@rows("now", [NOON, NIGHT])
def test_it_is_written_and_read(now: float, tmp_path: Path) -> None:
    path = tmp_path / f"{now}.db"
    write_demo(path, now)
    with reading(path) as db:
        shown = overview(db, [now - 30 * 86_400, now + 900], now)
    assert 1_000 < shown["whole"]["requests"] < 5_000
    assert all(model["whole"]["first_p95"] for model in shown["models"][:6])
    live = {
        (row.provider, row.window): row.used for row in Demo(clock=lambda: 0.0, wall=lambda: now).snapshot().allowances
    }
    assert {(one["account"], one["window"]): one["samples"][-1][1] for one in shown["windows"]} == live
    spent = [one["spent_at"] for one in shown["windows"]]
    assert any(spent) and not all(spent)
