"""The times that the history shows, divided into hours, days or weeks of this machine's time zone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, time, timedelta
from typing import Literal, NamedTuple

from proxy.observe.monitor.words import HOUR, clock, local

Time = Literal["today", "7 days", "30 days", "90 days"]

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Division(NamedTuple):
    """How a time is divided.

    title   of the periods
    edges   makes the edges of the periods of a moment, seconds since 1970
    label   names a period by its beginning, in so many cells
    """

    title: str
    edges: Callable[[float], list[float]]
    label: Callable[[float, int], str]


def _hours(now: float) -> list[float]:
    """Those of today that have begun, 23 to 25 of a whole day."""
    begin = midnight(now)
    return [begin + HOUR * number for number in range(int((now - begin) // HOUR) + 2)]


def _days(count: int) -> Callable[[float], list[float]]:
    return lambda now: [midnight(now, number) for number in range(1 - count, 2)]


def _weeks(days: int) -> Callable[[float], list[float]]:
    """Weeks that begin on Mondays; the first and the last one are not whole."""

    def edges(now: float) -> Iterator[float]:
        yield midnight(now, 1 - days)
        for number in range(2 - days, 1):
            if local(day := midnight(now, number)).tm_wday == 0:
                yield day
        yield midnight(now, 1)

    return lambda now: list(edges(now))


def midnight(at: float, days: int = 0) -> float:
    """The beginning of the day of a moment, or of one some days away."""
    day = datetime.fromtimestamp(at).date() + timedelta(days)
    return datetime.combine(day, time()).timestamp()


def _hour_label(at: float, _room: int) -> str:
    return clock(at)[:5]


def _day_label(at: float, room: int) -> str:
    """With the day of the week where there is room."""
    found = local(at)
    day = f"{found.tm_mon:02}-{found.tm_mday:02}"
    return f"{_WEEKDAYS[found.tm_wday]} {day}" if room >= 9 else day


#: In the order of their keys.
TIMES: Mapping[Time, Division] = {
    "today": Division("Hour", _hours, _hour_label),
    "7 days": Division("Day", _days(7), _day_label),
    "30 days": Division("Day", _days(30), _day_label),
    "90 days": Division("Week", _weeks(90), _day_label),
}


def neighbour(chosen: Time, by: int) -> Time:
    """The next longer or shorter time; the last one stays."""
    names = list(TIMES)
    return names[max(0, min(names.index(chosen) + by, len(names) - 1))]
