"""`history status` and `history clear`: what is kept, and its removal."""

from __future__ import annotations

import argparse
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from proxy.cli.command import Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.history.file import path_of, read, unusable
from proxy.cli.history.spans import local_text
from proxy.cli.printable import amount, counted
from proxy.config import ConfigError
from proxy.observe.history.problems import NewerHistory, is_damaged, is_full
from proxy.observe.history.retention import remove_until
from proxy.observe.history.schema import connect, damage_told
from proxy.observe.history.sums import QUARTER_S
from proxy.observe.history.usage import kept_since
from proxy.retention import Retention

#: What SQLite keeps beside the file.
_BESIDE = ("-wal", "-shm")
#: Tries to empty the log of writes, and seconds between them: another process may be reading.
_TRIES, _PAUSE_S = 20, 0.25


@dataclass(frozen=True, slots=True)
class _Held:
    """What the file has."""

    requests: int
    samples: int
    since: float | None


def status(_arguments: argparse.Namespace, context: Context) -> int:
    """Prints where the history is, what it has, and how long that is kept."""
    file, path = ConfigFile(context, new=True), path_of(context)
    source = file.source("history.enabled") or "default"
    say(f"{'on' if file.config.history else 'off'} (history.enabled, PROXY_HISTORY: {source})")
    say(f"file      {path}, {amount(_size(path))}" if path.exists() else f"file      {path}, not there yet")
    keep = file.config.section(Retention)
    if path.exists():
        held = read(context, lambda db: _held(db, None))
        since = "" if held.since is None else f" since {local_text(held.since)}"
        say(f"holds     {counted(held.requests, 'request')}{since}, {counted(held.samples, 'sample')} of allowances")
    days = counted(keep.history_days, "day") if keep.history_days else "ever"
    say(f"kept      for {days} (history.maxAgeDays), up to {amount(keep.history_bytes)} (history.maxBytes)")
    say(f"`{context.program} report` shows it, `{context.program} history clear` removes it")
    return 0


def clear(arguments: argparse.Namespace, context: Context) -> int:
    """Removes everything, or what is older than an age."""
    path, age = path_of(context), arguments.older_than
    if not path.exists():
        say(f"no history in {path}, nothing to remove")
        return 0
    until = None if age is None else int((time.time() - age) // QUARTER_S * QUARTER_S * 1000)
    if arguments.dry_run:
        say(f"would remove {_words(read(context, lambda db: _held(db, until)))} from {path}")
        return 0
    try:
        size = _size(path)
        with closing(connect(path)) as db, damage_told():
            held = _removed(db, until)
    except (sqlite3.Error, OSError, NewerHistory) as error:
        if not (is_damaged(error) or is_full(error)) or until is not None:
            raise ConfigError(unusable(path, error)) from None
        why = "the disk is full" if is_full(error) else "it was damaged, and nothing could be read of it"
        _remove_files(path)
        say(f"removed the file {path}: {why}. What callers used today went with it. A proxy makes a new one")
        return 0
    say(f"removed {_words(held)} from {path}: {amount(size)} before, {amount(_size(path))} now")
    return 0


def _words(held: _Held) -> str:
    return f"{counted(held.requests, 'request')} and {counted(held.samples, 'sample')} of allowances"


def _held(db: sqlite3.Connection, until: int | None) -> _Held:
    """What the file has, before a moment in milliseconds."""
    end = 2**62 if until is None else until
    requests = db.execute("SELECT count(*) FROM requests WHERE ended < ?", (end,)).fetchone()[0]
    samples = db.execute("SELECT count(*) FROM allowances WHERE at < ?", (end,)).fetchone()[0]
    return _Held(requests, samples, kept_since(db))


def _removed(db: sqlite3.Connection, until: int | None) -> _Held:
    """Removes what is older, with every trace of it in the file; returns what that was."""
    held = _held(db, until)
    remove_until(db, until)
    db.execute("VACUUM")  # writes the file anew: what was deleted is not in it
    for _ in range(_TRIES):
        busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return held
        time.sleep(_PAUSE_S)
    raise ConfigError(
        "everything was removed, but another program reads the file, so that its space is not free and its log of"
        " writes is not empty: end that program, and run this again"
    )


def _remove_files(path: Path) -> None:
    """Removes the file. A proxy that has it open notices, and makes a new one; so what is beside it goes first."""
    for end in (*_BESIDE, ""):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _size(path: Path) -> int:
    """Bytes of the file, and of its log of writes."""
    found = (path.with_name(path.name + end) for end in ("", "-wal"))
    return sum(one.stat().st_size for one in found if one.exists())
