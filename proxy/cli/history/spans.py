"""The time of a report: what `week` and `--since` mean, its days and its hours. All in this machine's time zone, with
its changes of summer time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from proxy.cli.ages import seconds_of
from proxy.config import ConfigError
from proxy.observe.history.sums import QUARTER_S
from proxy.observe.monitor.terminal.times import midnight

#: Periods of a report at most: the hours of 41 days, the days of almost three years.
MAX_PERIODS = 1_000
HOUR_S = 3_600
#: A named time -> its first day and the day after its last one, in days from today.
NAMED = {"today": (0, 1), "yesterday": (-1, 0), "week": (-6, 1), "month": (-29, 1)}
_WORDS = {"week": "the last 7 days", "month": "the last 30 days"}
_FORMS = "a date or time like 2026-11-20 or 2026-11-20T14:30, `today`, `yesterday`, or an age like 36h, 7d or 2w"


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time, in seconds since 1970, from one quarter of an hour to another.

    open   whether it lasts until now
    words  what it is called, "" for one without a name
    """

    since: float
    until: float
    open: bool
    words: str = ""


def span_of(name: str, since: str | None, until: str | None, now: float) -> TimeSpan:
    """The time of a name, or of the given ends. Raises ConfigError."""
    first, last = NAMED[name]
    end = _next_quarter(now)
    begin = midnight(now, first) if since is None else _floor(moment(since, now))
    if since is not None and begin >= end:
        raise ConfigError(f"--since {since}: that time is still to come")
    if until is None:
        ended = since is None and last <= 0
        words = _WORDS.get(name, name) if since is None else ""
        return TimeSpan(begin, midnight(now, last) if ended else end, not ended, words)
    stop = min(_floor(moment(until, now, "--until")), end)
    if stop <= begin:
        raise ConfigError(f"--until {until}: the report would end before it begins, {local_text(begin)}")
    return TimeSpan(begin, stop, stop == end)


def moment(text: str, now: float, option: str = "--since") -> float:
    """The moment that a user means. Raises ConfigError."""
    if text in ("today", "yesterday"):
        return midnight(now, NAMED[text][0])
    age = seconds_of(text)
    if age is not None:
        return max(0.0, now - age)
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        raise ConfigError(f"{option} {text!r}: expected {_FORMS}") from None


def from_first(span: TimeSpan, kept_since: float | None) -> TimeSpan:
    """The part of it of which anything can be known: periods before the first kept request are no empty ones."""
    return span if kept_since is None else replace(span, since=max(span.since, _floor(kept_since)))


def edges_of(span: TimeSpan, period: str) -> list[float]:
    """The edges of its days or hours; only its ends for "". Raises ConfigError if there are too many."""
    inner = {"": _no_edges, "day": _midnights, "hour": _hours}[period](span)
    if len(inner) >= MAX_PERIODS:
        raise ConfigError(
            f"that would be {len(inner) + 1:,} {period}s, and a report has at most {MAX_PERIODS:,}: choose a later"
            f" --since{', or --by day' if period == 'hour' else ''}"
        )
    return [span.since, *inner, span.until]


def _no_edges(_span: TimeSpan) -> list[float]:
    return []


def _midnights(span: TimeSpan) -> list[float]:
    count = round((span.until - span.since) / 86_400) + 2
    return [at for at in (midnight(span.since, day) for day in range(1, count)) if span.since < at < span.until]


def _hours(span: TimeSpan) -> list[float]:
    local = datetime.fromtimestamp(span.since)
    hour = int(span.since) - 60 * local.minute - local.second
    return [float(at) for at in range(hour, int(span.until), HOUR_S) if at > span.since]


def _floor(at: float) -> float:
    return float(at // QUARTER_S * QUARTER_S)


def _next_quarter(at: float) -> float:
    return _floor(at) + QUARTER_S


def iso_text(at: float) -> str:
    """A moment for programs: local, with its offset."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def local_text(at: float) -> str:
    """A moment for readers: `Mon 2026-11-23 14:30`."""
    return f"{datetime.fromtimestamp(at):%a %Y-%m-%d %H:%M}"


def day_text(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%a %Y-%m-%d}"


def short_text(at: float, now: float) -> str:
    """A moment in few cells: `14:30` of today, `Sat 14:30` of the days around, `2026-10-20`."""
    days = (datetime.fromtimestamp(at).date() - datetime.fromtimestamp(now).date()).days
    form = "%H:%M" if days == 0 else "%a %H:%M" if abs(days) < 7 else "%Y-%m-%d"
    return f"{datetime.fromtimestamp(at):{form}}"
