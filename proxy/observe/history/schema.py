"""The tables of the history, their versions, and how the file is opened.

requests    a row a request, at its end
sums        the same added up, by quarter of an hour: reports read these, since a million rows take seconds
allowances  a sample of a window of an allowance, whenever it changed
caller_days  what callers used today, for their limits
names       every text, once: other tables have its number

Times are milliseconds since 1970 (`ended`, `at`, `resets`), or quarters of an hour since then (`quarter`): the offset
of every time zone is a multiple of a quarter. Lengths of time are milliseconds.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from proxy.observe.history.past_request import AS_WRITTEN, PastRequest
from proxy.observe.history.problems import NewerHistory
from proxy.observe.history.sums import add_up, insert, write_sums

FILE_NAME = "history.db"
#: Seconds to wait for another process that writes; the removal of old names takes the longest.
BUSY_S = 20.0
#: A larger log of writes is cut when it was written back.
_WAL_BYTES = 4 * 1024 * 1024

#: What makes a file of each version out of one of the version before, in words that never change again: a new file
#: takes all steps.
MIGRATIONS = (
    """
CREATE TABLE names (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE);
CREATE TABLE requests (
  id INTEGER PRIMARY KEY, request TEXT, ended INTEGER, first_ms INTEGER, total_ms INTEGER, endpoint INTEGER,
  account INTEGER, asked INTEGER, served INTEGER, project INTEGER, session INTEGER, agent INTEGER, caller INTEGER,
  input INTEGER, cached INTEGER, output INTEGER, thinking INTEGER, aside INTEGER, searches INTEGER,
  outcome INTEGER, http INTEGER, kind INTEGER, retries INTEGER, fallback INTEGER, stop INTEGER,
  expected INTEGER, lost INTEGER
);
CREATE INDEX requests_by_end ON requests (ended);
CREATE INDEX requests_by_session ON requests (session, ended) WHERE session IS NOT NULL;
CREATE TABLE allowances (
  account INTEGER NOT NULL, "window" INTEGER NOT NULL, "limit" INTEGER NOT NULL, at INTEGER NOT NULL,
  used REAL NOT NULL, resets INTEGER,
  PRIMARY KEY (account, "window", "limit", at)
) WITHOUT ROWID;
""",
    """
CREATE TABLE sums (
  dimension INTEGER NOT NULL, quarter INTEGER NOT NULL, value INTEGER NOT NULL, model INTEGER NOT NULL,
  requests INTEGER NOT NULL, failed INTEGER NOT NULL, abandoned INTEGER NOT NULL, retries INTEGER NOT NULL,
  fallbacks INTEGER NOT NULL, input INTEGER NOT NULL, cacheable INTEGER NOT NULL, cached INTEGER NOT NULL,
  output INTEGER NOT NULL, thinking INTEGER NOT NULL, aside INTEGER NOT NULL, searches INTEGER NOT NULL,
  first BLOB NOT NULL, total BLOB NOT NULL,
  PRIMARY KEY (dimension, quarter, value, model)
) WITHOUT ROWID;
""",
    """
CREATE TABLE caller_days (
  day INTEGER NOT NULL, caller TEXT NOT NULL, requests INTEGER NOT NULL, tokens INTEGER NOT NULL,
  PRIMARY KEY (day, caller)
) WITHOUT ROWID;
""",
)
VERSION = len(MIGRATIONS)
#: The version since which the sums are as they are: those of older files are added up anew.
_SUMS_SINCE = 2
#: Requests that are added up at a time.
_STEP = 5_000


def connect(path: Path) -> sqlite3.Connection:
    """Opens the file, makes it if it is missing, and brings it to this version. Blocks. Raises sqlite3.Error, OSError,
    and NewerHistory."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    elif os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o600)
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        with damage_told():
            _open(db)
    except BaseException:
        db.close()
        raise
    return db


def _open(db: sqlite3.Connection) -> None:
    check_version(db)
    if not db.execute("PRAGMA page_count").fetchone()[0]:  # this writes, and means nothing to a file that has pages
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA secure_delete = FAST")  # what is removed from a page is overwritten
    db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    _migrate(db)


@contextmanager
def damage_told() -> Iterator[None]:
    """Raises sqlite3.DatabaseError where a value in the file is not what was written."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        raise sqlite3.DatabaseError("a value is not what was written") from error


def check_version(db: sqlite3.Connection) -> int:
    """The version of the file. Raises NewerHistory."""
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found > VERSION:
        raise NewerHistory(f"it has version {found}, this program reads {VERSION}")
    return found


def _migrate(db: sqlite3.Connection) -> None:
    if check_version(db) == VERSION:
        return
    with transaction(db):
        found = check_version(db)  # another process may have been quicker
        for script in MIGRATIONS[found:]:
            for statement in filter(str.strip, script.split(";")):
                db.execute(statement)
        if found < _SUMS_SINCE:
            _sum_anew(db)
        db.execute(f"PRAGMA user_version = {VERSION}")


def _sum_anew(db: sqlite3.Connection) -> None:
    rows = db.execute(f"SELECT {AS_WRITTEN} FROM requests ORDER BY id")
    names = Names(db)
    db.execute("DELETE FROM sums")
    while some := rows.fetchmany(_STEP):
        write_sums(db, add_up(PastRequest(*row) for row in some), names)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Writes all of it or nothing; other writers wait."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:  # a full disk has ended it
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def reading(path: Path, busy_s: float = BUSY_S) -> Iterator[sqlite3.Connection]:
    """The file for queries, with one state of it for all of them; it is not written, unless an older version wrote it.
    Blocks. Raises FileNotFoundError if there is none, else as `connect`.

    busy_s  seconds to wait for another process
    """
    if not path.exists():
        raise FileNotFoundError(path)
    with closing(_for_reading(path, busy_s)) as db, damage_told():
        db.execute("PRAGMA query_only = ON")
        db.execute("BEGIN")
        yield db


def _for_reading(path: Path, busy_s: float) -> sqlite3.Connection:
    # in a folder that cannot be written SQLite could not make what it needs beside the file
    how = "mode=ro" if os.access(path.parent, os.W_OK) else "immutable=1"
    address = f"{path.absolute().as_uri()}?{how}"
    db = sqlite3.connect(address, uri=True, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        with damage_told():
            if check_version(db) == VERSION:
                return db
    except BaseException:
        db.close()
        raise
    db.close()
    return connect(path)


#: Texts whose numbers are remembered, and those that are looked for at once.
_KNOWN, _AT_ONCE = 20_000, 500


class Names:
    """The numbers of texts. `forget` is called when another process may have removed some."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, which is written if it is new."""
        if text not in self._known:
            self.learn([text])
        return self._known[text]

    def learn(self, texts: Iterable[str]) -> None:
        """Finds the numbers of texts together, and writes those that are new."""
        new = [text for text in set(texts) if text not in self._known]
        if len(self._known) + len(new) > _KNOWN:
            self._known.clear()
        insert(self._db, "names (text)", [(text,) for text in new], "ON CONFLICT (text) DO NOTHING")
        for begin in range(0, len(new), _AT_ONCE):
            some = new[begin : begin + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            self._known.update(self._db.execute(f"SELECT text, id FROM names WHERE text IN ({marks})", some))
        if any(text not in self._known for text in new):
            raise sqlite3.DatabaseError("a name that was written is not there")

    def forget(self) -> None:
        self._known.clear()
