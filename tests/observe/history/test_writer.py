"""The writer: what it keeps, what it loses, and that nothing of the disk reaches the requests."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import sleep

import pytest
from samples import rows as rows_of

from observe.history.past import NOW, REQUEST, ROW, Written, ended, history, later, messages, rows, until
from proxy.observe.history import writer
from proxy.observe.history.caller_use import CallerUse
from proxy.observe.history.past_request import NAMED, PastRequest
from proxy.observe.history.problems import NewerHistory, problem_of
from proxy.observe.history.retention import HistoryBounds, remove_old, remove_until
from proxy.observe.history.schema import Names, connect, reading, transaction
from proxy.observe.history.usage import BY, read_usage
from proxy.observe.history.writer import MAX_WAITING, WriterTimers, write_requests


def kept(path: Path) -> int:
    try:
        return int(rows(path, "SELECT count(*) FROM requests")[0][0])
    except sqlite3.OperationalError:
        return -1


def test_a_request_comes_back_as_the_monitor_knew_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as written:
        written.put(ROW)
    named = ", ".join(
        f"(SELECT text FROM names WHERE names.id = {name})" if name in NAMED else name for name in PastRequest._fields
    )
    assert rows(path, f"SELECT {named} FROM requests") == [tuple(REQUEST)]
    assert (REQUEST.first_ms, REQUEST.total_ms, REQUEST.retries) == (1000, 4500, 1)
    assert (REQUEST.aside, REQUEST.searches) == (15, 2)
    assert (REQUEST.expected, REQUEST.lost, REQUEST.stop) == (900, "the tools changed", "tool_use")


def test_what_waits_is_written_at_the_end(tmp_path: Path) -> None:
    written = Written(tmp_path / "history.db", timers=WriterTimers(60.0, 60.0, 60.0))
    with written:
        written.put(*map(ended, range(50)))
    assert kept(written.path) == 50


def test_two_writers_on_one_file_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as one, Written(path) as other:
        threads = [
            threading.Thread(target=lambda w=w, n=n: [w.put(ended(n + i, session=f"s{i % 7}")) for i in range(500)])
            for n, w in ((0, one), (500, other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert one.told == other.told == []
    assert rows(path, "SELECT count(DISTINCT request), count(*) FROM requests") == [(1000, 1000)]
    with reading(path) as db:
        group = BY["session"]
        found = read_usage(db, group.dimension, [NOW - 900, NOW + 900], group.key)
    assert {key: usage.requests for key, usage in found.items()} == {
        (f"s{n}",): (144 if n < 3 else 142) for n in range(7)
    }


_KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from observe.history.past import Written, ended
from proxy.observe.history.writer import WriterTimers
with Written(Path(sys.argv[2]), timers=WriterTimers(0.1, 1.0, 3600.0)) as written:
    for number in range(100_000):
        written.put(ended(number))
        print(number, time.monotonic(), flush=True)
        time.sleep(0.001)
"""


def test_a_process_that_is_killed_loses_no_more_than_it_had_not_written(tmp_path: Path) -> None:
    path, tests = tmp_path / "history.db", Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", _KILLED, tests, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout)
        told = [next(lines).split()]
        while float(told[-1][1]) - float(told[0][1]) < 0.5:
            told.append(next(lines).split())
        os.kill(process.pid, signal.SIGKILL)
        told += [line.split() for line in lines]
    (last,) = rows(path, "SELECT max(id), count(*) FROM requests")
    assert last[0] == last[1] and rows(path, "PRAGMA integrity_check") == [("ok",)]
    lost = [float(at) for number, at in told if int(number) >= last[1]]
    assert last[1] > 50 and (not lost or float(told[-1][1]) - lost[0] < 1.0)


def test_the_queue_is_bounded_and_what_is_dropped_is_counted(tmp_path: Path) -> None:
    blocked = sqlite3.connect(history(tmp_path), isolation_level=None)
    blocked.execute("BEGIN IMMEDIATE")
    with Written(tmp_path / "history.db") as written:
        for number in range(MAX_WAITING + 10):  # before the thread has taken any of them, or after
            written.put(ended(number))
        assert len(written.writer._waiting) <= MAX_WAITING
        blocked.execute("ROLLBACK")
        blocked.close()
    assert kept(written.path) >= MAX_WAITING - 10


Cure = Callable[[], object]


def folder_in_the_way(path: Path, _patch: pytest.MonkeyPatch) -> Cure:
    path.mkdir()
    return path.rmdir


def garbage(path: Path, _patch: pytest.MonkeyPatch) -> Cure:
    path.write_bytes(b"this is no database " * 500)
    return path.unlink


def newer(path: Path, _patch: pytest.MonkeyPatch) -> Cure:
    history(path.parent)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    return path.unlink


def full(path: Path, patch: pytest.MonkeyPatch) -> Cure:
    """A file that may not grow, as on a full disk."""
    history(path.parent)
    make = writer.connect

    def small(path: Path) -> sqlite3.Connection:
        db = make(path)
        db.execute("PRAGMA max_page_count = 1")
        return db

    patch.setattr(writer, "connect", small)
    return lambda: patch.setattr(writer, "connect", make)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [(folder_in_the_way, "unable to open"), (garbage, "damaged"), (newer, "newer version"), (full, "full")],
)
def test_a_file_that_cannot_be_used_is_told_once_and_tried_again(
    trouble: Callable[[Path, pytest.MonkeyPatch], Cure], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.db"
    cure = trouble(path, monkeypatch)
    with Written(path) as written:
        written.put(*(ended(number, session="s" * 500 + str(number)) for number in range(30)))
        until(lambda: bool(written.told))
        sleep(0.1)  # several tries
        assert [words in told for told in written.told] == [True] and messages(written.log) == ["history_not_kept"]
        cure()
        written.put(ended(30))
        until(lambda: len(written.told) == 2)
    assert written.told[1] == "" and messages(written.log) == ["history_not_kept", "history_kept_again"]
    assert kept(path) == 31


def test_a_fault_of_ours_ends_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as written:
        written.put(ended(0, input_tokens=2**70))
        until(lambda: bool(written.log.records))
        written.put(ended(1))
    assert rows(path, "SELECT request FROM requests") == [("r1",)]
    assert messages(written.log) == ["internal_error"] and written.told == []


def test_one_that_cannot_be_written_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as written:
        written.put(ended(0), ended(1, requested="\ud800"), ended(2, elapsed=float("inf")), ended(3))
    assert rows(path, "SELECT request FROM requests ORDER BY id") == [("r0",), ("r3",)]
    assert [fields["dropped"] for fields in written.log.all("internal_error")] == [2]


def test_a_file_that_is_deleted_or_replaced_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as written:
        written.put(ended(0))
        until(lambda: kept(path) == 1)
        for one in tmp_path.iterdir():
            one.unlink()
        written.put(ended(1))
        until(lambda: kept(path) == 1)
    assert rows(path, "SELECT request FROM requests") == [("r1",)] and written.told == []


def test_a_file_that_a_newer_process_took_over_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as written:
        written.put(ended(0))
        until(lambda: kept(path) == 1)
        other = connect(path)
        other.execute("PRAGMA user_version = 99")
        written.put(ended(1))
        until(lambda: bool(written.told))
        assert other.execute("SELECT request FROM requests").fetchall() == [("r0",)]
        other.close()
    assert "newer version" in written.told[0] and written.log.all("history_lost") == [{"count": 1}]


def test_a_removal_that_fails_writes_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.db"

    def locked(*_given: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(writer, "remove_old", locked)
    with Written(path) as written:
        written.put(*map(ended, range(10)))
        until(lambda: bool(written.told))
        sleep(0.1)
    assert rows(path, "SELECT count(*) FROM requests") == [(10,)]


# -- what is removed


def test_what_is_too_old_goes_with_its_names(tmp_path: Path) -> None:
    path = history(tmp_path, [later(-31.5 * 86_400, session="old", project="gone"), later(0)])
    db = connect(path)
    remove_old(db, HistoryBounds(30, 2**40), NOW)
    db.close()
    assert rows(path, "SELECT count(*) FROM requests") == [(1,)]
    assert rows(path, "SELECT text FROM names WHERE text IN ('old', 'gone', 's1', 'shop') ORDER BY text") == [
        ("s1",),
        ("shop",),
    ]
    with reading(path) as found:
        group = BY["project"]
        assert read_usage(found, group.dimension, [0, NOW + 900], group.key).keys() == {("shop",)}


def test_a_file_that_is_too_large_loses_its_oldest(tmp_path: Path) -> None:
    path = history(tmp_path, [later(900 * n, request=f"r{n:05}", session=f"{n:0200}") for n in range(3000)])
    size = path.stat().st_size
    db = connect(path)
    remove_old(db, HistoryBounds(0, size // 2), NOW)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    assert size // 4 < path.stat().st_size <= size // 2
    (oldest, newest, count) = rows(path, "SELECT min(request), max(request), count(*) FROM requests")[0]
    assert newest == "r02999" and oldest == f"r{3000 - count:05}"


def test_all_of_it_can_go(tmp_path: Path) -> None:
    path = history(tmp_path, [later(n) for n in range(7)])
    db = connect(path)
    assert remove_until(db, None) == 7
    db.close()
    assert [rows(path, f"SELECT count(*) FROM {table}") for table in ("requests", "sums", "names")] == [[(0,)]] * 3


def test_names_that_another_process_removed_are_written_again(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as written:
        written.put(ended(0))
        until(lambda: kept(path) == 1)
        other = connect(path)
        remove_until(other, None)
        other.close()
        written.put(ended(1))
        until(lambda: kept(path) == 1)
    with reading(path) as db:
        group = BY["project"]
        assert read_usage(db, group.dimension, [NOW - 900, NOW], group.key).keys() == {("shop",)}


def test_names_of_our_own_removal_are_written_again(tmp_path: Path) -> None:
    path = history(tmp_path, [later(-10 * 86_400, project="once")])
    timers = WriterTimers(0.0, 0.02, 0.0)
    with Written(path, HistoryBounds(1, 2**40), timers=timers, wall=lambda: NOW) as written:
        until(lambda: rows(path, "SELECT count(*) FROM names") == [(0,)])
        written.put(ended(1, project="once"))
    assert rows(path, "SELECT count(*) FROM requests JOIN names ON names.id = project WHERE text = 'once'") == [(1,)]


def test_a_removal_that_cannot_read_a_row_ends_no_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = history(tmp_path, [later(0)])
    db = connect(path)
    db.execute("INSERT INTO requests (ended) VALUES (NULL), (x'00'), (-9e999), ('text')")
    db.close()
    with Written(path, HistoryBounds(30, 2**40), wall=lambda: NOW + 90 * 86_400) as written:
        until(lambda: kept(path) == 3)  # the one that is too old, and the one without end or beginning
    assert written.told == []

    def broken(*_given: object) -> None:
        raise KeyError

    monkeypatch.setattr(writer, "remove_old", broken)
    with Written(path) as written:
        until(lambda: bool(written.log.all("internal_error")))
        written.put(ended(1))
    assert rows(path, "SELECT count(*) FROM requests WHERE request = 'r1'") == [(1,)]


def test_days_go_at_once_where_requests_agree_with_the_clock(tmp_path: Path) -> None:
    db = connect(history(tmp_path, [later(86_400 * day) for day in range(-40, 1)]))
    remove_old(db, HistoryBounds(7, 2**40), NOW)
    assert db.execute("SELECT count(*) FROM requests").fetchone() == (8,)
    db.close()


def test_a_clock_that_is_wrong_for_a_moment_takes_one_day(tmp_path: Path) -> None:
    path = history(tmp_path, [later(86_400 * day) for day in range(-20, 1)])
    db = connect(path)
    remove_old(db, HistoryBounds(30, 2**40), NOW)
    assert db.execute("SELECT count(*) FROM requests").fetchone() == (21,)
    with transaction(db):
        write_requests(db, [later(500 * 86_400 + 60 * n) for n in range(9)], Names(db))  # served meanwhile
    remove_old(db, HistoryBounds(30, 2**40), NOW + 500 * 86_400)
    assert db.execute("SELECT count(*) FROM requests").fetchone() == (20 + 9,)
    db.close()


def test_a_file_whose_rows_cannot_be_removed_is_told_of(tmp_path: Path) -> None:
    db = connect(history(tmp_path, [later(n) for n in range(5)]))
    db.execute("CREATE TRIGGER stays BEFORE DELETE ON requests BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(sqlite3.DatabaseError, match="cannot be removed"):
        remove_old(db, HistoryBounds(0, 1), NOW)
    db.close()


# -- what callers used


def test_what_callers_used_adds_up_over_processes(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as one, Written(path) as other:
        one.put(CallerUse(20_000, "anna", 1, 0), CallerUse(20_000, "anna", 0, 70))
        until(lambda: len(one.used) > 0)
        other.put(CallerUse(20_000, "anna", 1, 30), CallerUse(20_000, "bert", 1, 5))
        until(lambda: len(other.used) > 0)
        assert other.used[-1]["anna"] == CallerUse(20_000, "anna", 2, 100)
        other.put(CallerUse(20_003, "anna", 1, 1))
        until(lambda: other.used[-1].keys() == {"anna"} and other.used[-1]["anna"].tokens == 1)
    assert rows(path, "SELECT count(*) FROM caller_days WHERE day < 20003") == [(0,)]


def test_requests_that_are_deleted_change_no_limit(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Written(path) as written:
        written.put(ROW, CallerUse(20_000, "anna", 1, 70))
    db = connect(path)
    remove_until(db, None)
    db.close()
    assert rows(path, "SELECT tokens FROM caller_days") == [(70,)]


@rows_of(
    "error, reason, cure",
    [
        (PermissionError(13, "Permission denied"), "Permission denied", "Its owner must be able"),
        (sqlite3.DatabaseError("malformed"), "it is damaged (malformed)", "`model-proxy history clear` removes it"),
        (sqlite3.OperationalError("database or disk is full"), "database or disk is full", "Make room on its disk"),
        (sqlite3.OperationalError("database is locked"), "database is locked", "Another process writes it"),
        (NewerHistory("it has version 9"), "a newer version of this program wrote it", "Use that version"),
    ],
)
def test_problems_are_told_in_words(error: Exception, reason: str, cure: str) -> None:
    told = problem_of(error)
    assert told.startswith(reason) and cure in told
