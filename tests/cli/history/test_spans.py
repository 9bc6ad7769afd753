"""What the times of a report mean, also where summer time begins and ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from observe.history.past import NOW
from samples import rows

from proxy.cli.history.spans import (
    MAX_PERIODS,
    TimeSpan,
    edges_of,
    from_first,
    iso_text,
    local_text,
    short_text,
    span_of,
)
from proxy.config import ConfigError

HOUR, DAY = 3600, 86_400


@rows(
    "name, since, until, begin, end",
    [
        ("today", None, None, "Fri 2027-01-15 00:00", "Fri 2027-01-15 09:15"),
        ("yesterday", None, None, "Thu 2027-01-14 00:00", "Fri 2027-01-15 00:00"),
        ("week", None, None, "Sat 2027-01-09 00:00", "Fri 2027-01-15 09:15"),
        ("month", None, None, "Thu 2026-12-17 00:00", "Fri 2027-01-15 09:15"),
        ("week", "2026-11-20", None, "Fri 2026-11-20 00:00", "Fri 2027-01-15 09:15"),
        ("week", "20261120", None, "Fri 2026-11-20 00:00", "Fri 2027-01-15 09:15"),
        ("week", "2026-11-20T14:44", None, "Fri 2026-11-20 14:30", "Fri 2027-01-15 09:15"),
        ("week", "2026-11-20 14:44:59", None, "Fri 2026-11-20 14:30", "Fri 2027-01-15 09:15"),
        ("week", "2026-11-20T14:30Z", None, "Fri 2026-11-20 15:30", "Fri 2027-01-15 09:15"),
        ("week", "36h", None, "Wed 2027-01-13 21:00", "Fri 2027-01-15 09:15"),
        ("week", "2w", None, "Fri 2027-01-01 09:00", "Fri 2027-01-15 09:15"),
        ("week", "10m", None, "Fri 2027-01-15 08:45", "Fri 2027-01-15 09:15"),
        ("week", "yesterday", "today", "Thu 2027-01-14 00:00", "Fri 2027-01-15 00:00"),
        ("week", None, "2027-01-10T12:10", "Sat 2027-01-09 00:00", "Sun 2027-01-10 12:00"),
        ("week", "1d", "2030-01-01", "Thu 2027-01-14 09:00", "Fri 2027-01-15 09:15"),
        ("week", "999999999d", None, "Thu 1970-01-01 01:00", "Fri 2027-01-15 09:15"),
    ],
)
def test_the_ends_of_a_time(name: str, since: str | None, until: str | None, begin: str, end: str) -> None:
    found = span_of(name, since, until, NOW + 1)
    assert (local_text(found.since), local_text(found.until)) == (begin, end)
    assert found.open == (end == "Fri 2027-01-15 09:15")


@rows(
    "since, until, words",
    [
        ("monday", None, "--since 'monday': expected a date or time like"),
        ("", None, "expected a date"),
        ("2026-13-01", None, "expected a date"),
        ("7x", None, "expected a date"),
        ("٣d", None, "expected a date"),
        ("2027-01-16", None, "still to come"),
        ("1d", "soon", "--until 'soon': expected"),
        ("1d", "2d", "would end before it begins"),
    ],
)
def test_what_is_no_time(since: str, until: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        span_of("week", since, until, NOW)


def test_days_and_hours_follow_summer_time() -> None:
    span = span_of("week", "2026-10-24", "2026-10-27", NOW)
    days = edges_of(span, "day")
    assert [end - begin for begin, end in pairwise(days)] == [24 * HOUR, 25 * HOUR, 24 * HOUR]
    hours = edges_of(span_of("week", "2026-10-25", "2026-10-26", NOW), "hour")
    assert [iso_text(at)[11:] for at in hours[1:5]] == [
        f"0{hour}:00:00+0{zone}:00" for hour, zone in ((1, 2), (2, 2), (2, 1), (3, 1))
    ]
    assert len(hours) == 26
    spring = edges_of(span_of("week", "2026-03-29", "2026-03-30", NOW), "hour")
    assert [iso_text(at)[11:16] for at in spring[:4]] == ["00:00", "01:00", "03:00", "04:00"] and len(spring) == 24


def test_the_first_and_the_last_period_may_be_parts() -> None:
    edges = edges_of(span_of("week", "2027-01-13T14:30", None, NOW), "day")
    assert [local_text(at)[4:] for at in edges] == [
        "2027-01-13 14:30",
        "2027-01-14 00:00",
        "2027-01-15 00:00",
        "2027-01-15 09:15",
    ]
    assert [local_text(at)[-5:] for at in edges_of(span_of("week", "80m", None, NOW), "hour")] == [
        "07:30",
        "08:00",
        "09:00",
        "09:15",
    ]


def test_a_report_has_a_bounded_number_of_periods() -> None:
    span = TimeSpan(NOW - MAX_PERIODS * HOUR, NOW, open=True)
    assert len(edges_of(span, "hour")) == MAX_PERIODS + 1
    with pytest.raises(
        ConfigError, match="1,001 hours, and a report has at most 1,000: choose a later --since, or --by day"
    ):
        edges_of(TimeSpan(NOW - (MAX_PERIODS + 1) * HOUR, NOW, open=True), "hour")
    with pytest.raises(ConfigError, match=r"days.*choose a later --since$"):
        edges_of(TimeSpan(NOW - 1100 * DAY, NOW, open=True), "day")


def test_periods_before_the_first_request_are_no_empty_ones() -> None:
    span = TimeSpan(NOW - 9 * DAY, NOW, open=True)
    assert from_first(span, NOW - DAY + 60).since == NOW - DAY
    assert from_first(span, NOW - 20 * DAY) == from_first(span, None) == span


@rows(
    "ago, text",
    [(0, "09:00"), (9 * HOUR, "00:00"), (10 * HOUR, "Thu 23:00"), (7 * DAY, "2027-01-08"), (-DAY, "Sat 09:00")],
)
def test_moments_in_few_cells(ago: float, text: str) -> None:
    assert short_text(NOW - ago, NOW) == text
