"""The times of the history, in time zones with changes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from unittest.mock import patch

import pytest
from samples import rows

from proxy.observe.history.overview import MAX_PERIODS
from proxy.observe.history.sums import QUARTER_S
from proxy.observe.monitor.terminal.times import TIMES, Time, neighbour


@contextmanager
def zone(name: str) -> Iterator[None]:
    with patch.dict(os.environ, TZ=name):
        time.tzset()
        yield
    time.tzset()


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


BERLIN, HOWE = "Europe/Berlin", "Australia/Lord_Howe"


@rows(
    "name, chosen, now, lengths",
    [
        ("UTC", "today", "2026-08-19T00:00:00", {3600: 1}),
        ("UTC", "today", "2026-08-19T12:00:07", {3600: 13}),
        (BERLIN, "today", "2026-03-29T23:59:00", {3600: 23}),
        (BERLIN, "today", "2026-10-25T23:59:00", {3600: 25}),
        (HOWE, "today", "2026-04-05T23:59:00", {3600: 25}),  # 24 hours and a half
        (BERLIN, "7 days", "2026-10-28T12:00:00", {86_400: 6, 90_000: 1}),
        (BERLIN, "30 days", "2026-04-10T12:00:00", {86_400: 29, 82_800: 1}),
        ("UTC", "90 days", "2026-08-19T12:00:00", {604_800: 12, 3 * 86_400: 2}),
    ],
)
def test_a_time_has_periods_of_this_machines_days(name: str, chosen: Time, now: str, lengths: dict[int, int]) -> None:
    with zone(name):
        moment = at(now)
        edges = TIMES[chosen].edges(moment)
    found = [round(then - one) for one, then in pairwise(edges)]
    assert {length: found.count(length) for length in found} == lengths
    assert edges[0] <= moment < edges[-1] and len(found) <= MAX_PERIODS
    assert all(edge % QUARTER_S == 0 for edge in edges)


@pytest.mark.parametrize(
    ("chosen", "labels"),
    [
        ("today", ["02:00", "01:00", "00:00"]),
        ("7 days", ["Wed 08-19", "Tue 08-18", "Mon 08-17"]),
        ("90 days", ["Mon 08-17", "Mon 08-10", "Mon 08-03"]),
    ],
)
def test_periods_have_names(chosen: Time, labels: list[str]) -> None:
    with zone(BERLIN):
        division = TIMES[chosen]
        edges = division.edges(at("2026-08-19T02:30:00"))
        assert [division.label(edge, 9) for edge in reversed(edges[:-1])][:3] == labels
        assert [division.label(edge, 5) for edge in reversed(edges[:-1])][:3] == [label[-5:] for label in labels]


def test_the_next_time_is_longer_or_shorter_up_to_the_last_one() -> None:
    assert [neighbour("today", by) for by in (-1, 1)] == ["today", "7 days"]
    assert [neighbour("90 days", by) for by in (-1, 1)] == ["30 days", "90 days"]
