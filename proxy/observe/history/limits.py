"""The windows of allowances over time, and when one will be spent at the pace of the last hours."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.core.allowances.report import FULL
from proxy.observe.history.usage import Texts

#: Hours whose pace counts.
PACE_S = 3 * 3600.0
#: A pace is not told of a shorter time.
LEAST_S = 10 * 60.0
#: Ends of a window that differ by less are one: services compute them from the time that is left.
_SAME_END_S = 120.0


@dataclass(frozen=True, slots=True)
class UsedAt:
    """A sample: times are seconds since 1970, `used` is per cent."""

    at: float
    used: float
    resets_at: float | None


@dataclass(frozen=True, slots=True)
class WindowPast:
    """A window of an account's allowance, and its samples, the oldest first. One before the time that was asked for
    tells the use at its beginning."""

    account: str
    window: str
    limit: str
    samples: tuple[UsedAt, ...]

    @property
    def place(self) -> tuple[str, str, str]:
        return self.account, self.window, self.limit


#: The next window after one, in the order of the table's key: the names of windows are few, and its rows many.
_NEXT = (
    'SELECT account, "window", "limit" FROM allowances WHERE (account, "window", "limit") > (?, ?, ?)'
    ' ORDER BY account, "window", "limit" LIMIT 1'
)
_OF_WINDOW = 'FROM allowances WHERE account = ?1 AND "window" = ?2 AND "limit" = ?3'
#: The newest sample before a moment, if its period went on then; one whose end is not known goes on for a month.
_BEFORE = (
    f"SELECT * FROM (SELECT at, used, resets {_OF_WINDOW} AND at < ?4 ORDER BY at DESC LIMIT 1)"
    f" WHERE resets > ?4 OR (resets IS NULL AND at > ?4 - {31 * 24 * 3600 * 1000})"
)
_WITHIN = f"{_OF_WINDOW} AND at >= ?4 AND at < ?5"
_ALL = f"SELECT at, used, resets {_WITHIN}"
#: The last sample of each step of time, and that with the most use: of a group SQLite takes the row of the maximum.
_THINNED = " UNION ".join(
    f"SELECT {at}, {used}, resets {_WITHIN} GROUP BY at / ?6"
    for at, used in (("max(at) AS at", "used"), ("at", "max(used)"))
)


def windows(db: sqlite3.Connection, since: float, until: float, steps: int = 0) -> list[WindowPast]:
    """The windows of which something is known in the time, by account. `steps`: at most two samples of each of so many
    parts of the time; 0 for all."""
    within, more = (_THINNED, [max(1, int(1000 * (until - since) / steps))]) if steps else (_ALL, [])
    query = f"{_BEFORE} UNION {within} ORDER BY at"
    names = Texts(db)
    found, place = [], (-1, -1, -1)
    while (following := db.execute(_NEXT, place).fetchone()) is not None:
        place = following
        rows = db.execute(query, (*place, 1000 * since, 1000 * until, *more))
        samples = tuple(UsedAt(at / 1000, used, None if ends is None else ends / 1000) for at, used, ends in rows)
        if samples:
            account, window, limit = map(names.text, place)
            found.append(WindowPast(account, window, limit, samples))
    return sorted(found, key=lambda one: (one.account, one.limit, one.window))


def curve(samples: Sequence[UsedAt], now: float) -> list[UsedAt]:
    """The samples, and no use at all from each end of a period on that came before the next sample, or before now."""
    nexts = [*(then.at for then in samples[1:]), now]
    points: list[UsedAt] = []
    for one, then in zip(samples, nexts, strict=True):
        points.append(one)
        if one.resets_at is not None and one.at < one.resets_at < then:
            points.append(UsedAt(one.resets_at, 0.0, None))
    return points


def thinned(samples: Sequence[UsedAt], most: int) -> list[UsedAt]:
    """At most about `most` samples that show the same curve: the last one of each step of time, and each end of a
    period, where the use falls."""
    if len(samples) <= most:
        return list(samples)
    step = (samples[-1].at - samples[0].at) / most
    return [
        one
        for one, then in zip(samples, (*samples[1:], None), strict=True)
        if then is None or then.used < one.used or int(then.at / step) != int(one.at / step)
    ]


def pace(samples: Sequence[UsedAt], now: float) -> float | None:
    """The per cent a second that were used in the last hours; None if that is not known, or does not matter: the window
    is spent, or was reset since."""
    if not samples:
        return None
    last = samples[-1]
    if last.used >= FULL or (last.resets_at is not None and last.resets_at <= now):
        return None
    if last.at < now - PACE_S:
        return 0.0  # else there would be another sample
    first = _begin(samples, last, now)
    if last.at - first.at < LEAST_S:
        return None
    # nothing was used since the last sample, either
    return max(0.0, last.used - first.used) / (now - first.at)


def spent_at(samples: Sequence[UsedAt], now: float) -> float | None:
    """When the window will be spent at the pace of the last hours, in seconds since 1970; None if it will not be before
    it is reset, or if that is not known."""
    a_second = pace(samples, now)
    if not a_second:
        return None
    last = samples[-1]
    end = now + (FULL - last.used) / a_second
    return None if last.resets_at is not None and end >= last.resets_at else end


def _begin(samples: Sequence[UsedAt], last: UsedAt, now: float) -> UsedAt:
    """The oldest sample of the period of the last one that is not older than the hours that count."""
    begin = last
    for one in reversed(samples):
        if one.at < now - PACE_S or one.used > begin.used or _ends_differ(one, last):
            break
        begin = one
    return begin


def _ends_differ(one: UsedAt, other: UsedAt) -> bool:
    if one.resets_at is None or other.resets_at is None:
        return one.resets_at is not other.resets_at
    return abs(one.resets_at - other.resets_at) > _SAME_END_S
