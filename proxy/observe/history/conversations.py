"""The conversations of a time, and the turns of one."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from proxy.observe.history.past_request import AS_WRITTEN, PastRequest, text_of
from proxy.observe.history.sums import DIMENSIONS, QUARTER_S
from proxy.observe.history.usage import SUMS, Usage

#: Turns of a conversation that are read at most, the newest.
MAX_TURNS = 1_000


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session. Counts are of the time that was asked for; account, model and project of its last turn; `began`,
    `ended`: seconds since 1970, of all that is kept of it."""

    session: str
    began: float
    ended: float
    account: str
    model: str
    project: str
    caller: str
    usage: Usage


def conversations(db: sqlite3.Connection, since: float, until: float, most: int) -> list[Conversation]:
    """The sessions with a request between two moments, the newest first, at most `most`."""
    rows = db.execute(
        f"SELECT value, text, {SUMS} FROM sums JOIN names ON names.id = value"
        " WHERE dimension = ? AND quarter >= ? AND quarter < ? AND text != ''"
        " GROUP BY value ORDER BY (SELECT max(ended) FROM requests WHERE session = value) DESC LIMIT ?",
        (DIMENSIONS["session"], int(since // QUARTER_S), -int(-until // QUARTER_S), most),
    ).fetchall()
    found = (_conversation(db, number, name, Usage(*counts)) for number, name, *counts in rows)
    return [one for one in found if one is not None]


_LAST = ", ".join(map(text_of, ("account", "served", "project", "caller")))


def _conversation(db: sqlite3.Connection, number: int, name: str, usage: Usage) -> Conversation | None:
    began = db.execute("SELECT min(ended - total_ms) FROM requests WHERE session = ?", (number,)).fetchone()[0]
    last = db.execute(
        f"SELECT ended, {_LAST} FROM requests WHERE session = ? ORDER BY ended DESC LIMIT 1", (number,)
    ).fetchone()
    if last is None:
        return None
    ended, *texts = last
    account, model, project, caller = (text or "" for text in texts)
    return Conversation(name, began / 1000, ended / 1000, account, model, project, caller, usage)


def turns(db: sqlite3.Connection, session: str, most: int = MAX_TURNS) -> list[PastRequest]:
    """The newest requests of a session, in the order of their ends."""
    rows = db.execute(
        f"SELECT {AS_WRITTEN} FROM requests WHERE session = (SELECT id FROM names WHERE text = ?)"
        " ORDER BY ended DESC LIMIT ?",
        (session, most),
    ).fetchall()
    return [PastRequest(*row) for row in reversed(rows)]


def sessions_like(db: sqlite3.Connection, start: str, most: int = 20) -> list[str]:
    """The sessions whose names begin like this."""
    rows = db.execute(
        "SELECT text FROM names WHERE substr(text, 1, ?) = ? AND EXISTS"
        " (SELECT 1 FROM requests WHERE session = names.id) ORDER BY text LIMIT ?",
        (len(start), start, most),
    )
    return [text for (text,) in rows]
