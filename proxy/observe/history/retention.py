"""How long the history is kept, how large its file may be, and the removal of what is beyond."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from proxy.observe.history.past_request import NAMED
from proxy.observe.history.schema import transaction
from proxy.observe.history.sums import QUARTER_S
from proxy.observe.history.usage import kept_since

_DAY_S = 24 * 3600.0
#: Requests that ended within this time say whether the clock is right.
_LATELY_S = 10 * _DAY_S
#: Requests that are removed at a time: other processes may write in between.
_STEP = 5_000
#: The share of the oldest requests that goes when the file is too large.
_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class HistoryBounds:
    """days  0: for ever. Requests may stay a day longer
    size  bytes of the file
    """

    days: int
    size: int


def remove_old(db: sqlite3.Connection, bounds: HistoryBounds, now: float) -> None:
    """Removes what is too old, and the oldest of a file that is too large. `now`: seconds since 1970; where the
    requests do not agree with that, a day goes at a time. Raises sqlite3.Error."""
    oldest, end = kept_since(db), now - bounds.days * _DAY_S
    if bounds.days and oldest is not None and oldest < end - _DAY_S:
        remove_until(db, round(1000 * (end if _agrees(db, now) else min(end, oldest + _DAY_S))))
    while _used_bytes(db) > bounds.size and (until := _end_of_oldest(db)) is not None:
        if not remove_until(db, until):
            raise sqlite3.DatabaseError("its oldest requests cannot be removed")


def remove_until(db: sqlite3.Connection, until: int | None) -> int:
    """Removes what ended before a moment, in milliseconds since 1970, or all; returns the number of requests."""
    end = 2**62 if until is None else until
    removed = 0
    while step := _remove_requests(db, end):
        removed += step
    with transaction(db):
        samples = db.execute("DELETE FROM allowances WHERE at < ?", (end,)).rowcount
        db.execute("DELETE FROM sums WHERE quarter < ?", (min(end // (QUARTER_S * 1000), 2**31),))
        if removed or samples:
            db.execute(_UNUSED_NAMES)
    db.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page
    return removed


def _remove_requests(db: sqlite3.Connection, end: int) -> int:
    with transaction(db):
        some = "SELECT id FROM requests WHERE ended < ? ORDER BY ended LIMIT ?"
        return db.execute(f"DELETE FROM requests WHERE id IN ({some})", (end, _STEP)).rowcount


def _agrees(db: sqlite3.Connection, now: float) -> bool:
    """Whether requests ended on two days lately: a clock that is wrong for some hours makes one such day."""
    found = db.execute(
        "SELECT count(DISTINCT ended / ?) FROM requests WHERE ended BETWEEN ? AND ?",
        [round(1000 * one) for one in (_DAY_S, now - _LATELY_S, now + _DAY_S)],
    ).fetchone()
    return bool(found[0] > 1)


def _used_bytes(db: sqlite3.Connection) -> int:
    pages, free, size = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _end_of_oldest(db: sqlite3.Connection) -> int | None:
    """The moment before which the oldest share of the requests ended; None without any."""
    count = int(db.execute("SELECT count(*) FROM requests").fetchone()[0])
    row = db.execute(
        "SELECT ended FROM requests WHERE ended >= 0 ORDER BY ended LIMIT 1 OFFSET ?", (int(count * _SHARE),)
    ).fetchone()
    return None if row is None else int(row[0]) + 1


_USERS = " UNION ".join(
    f'SELECT "{column}" FROM {table} WHERE "{column}" IS NOT NULL'
    for table, columns in (
        ("requests", sorted(NAMED)),
        ("sums", ("value", "model")),
        ("allowances", ("account", "window", "limit")),
    )
    for column in columns
)
_UNUSED_NAMES = f"DELETE FROM names WHERE id NOT IN ({_USERS})"
