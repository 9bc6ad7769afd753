"""What callers with keys of their own used on a day, for their limits. It is kept even where no history is: a limit
holds over restarts, and over all processes on one file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from proxy.observe.history.sums import insert

#: Days that are kept: today's, and yesterday's for a process whose clock is behind.
_DAYS = 2


class CallerUse(NamedTuple):
    """What a caller used more. `day`: days since 1970, UTC."""

    day: int
    caller: str
    requests: int
    tokens: int


_ADDED = (
    "ON CONFLICT (day, caller) DO UPDATE SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens"
)


def write_use(db: sqlite3.Connection, more: Iterable[CallerUse]) -> int | None:
    """Adds what was used, within a transaction; returns the newest day of it, None if there was none."""
    found = list(more)
    if not found:
        return None
    insert(db, "caller_days (day, caller, requests, tokens)", found, _ADDED)
    newest = max(one.day for one in found)
    db.execute("DELETE FROM caller_days WHERE day <= ?", (newest - _DAYS,))
    return newest


def read_use(db: sqlite3.Connection, day: int) -> Mapping[str, CallerUse]:
    """caller -> what it used on a day, in all processes."""
    rows = db.execute(
        "SELECT day, caller, requests, tokens FROM caller_days WHERE day = ?"
        " AND typeof(caller) = 'text' AND typeof(requests) = 'integer' AND typeof(tokens) = 'integer'",
        (day,),
    )
    return {use.caller: use for use in map(CallerUse._make, rows)}
