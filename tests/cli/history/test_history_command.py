"""`history status` and `history clear`, with and without a proxy that writes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from captured import Run
from observe.history.past import NOW, Written, ended, history, later, messages, rows, until
from samples import rows as walked

from cli.history.week import DAY, week
from proxy.cli.history import keeping
from proxy.observe.history.allowance_samples import Sample
from proxy.observe.history.caller_use import CallerUse
from proxy.observe.history.schema import Names, connect, transaction
from proxy.observe.history.writer import write_samples

SECRET = b"very-secret-project"


def count(path: Path) -> int:
    return int(rows(path, "SELECT count(*) FROM requests")[0][0])


def traces(folder: Path, text: bytes = SECRET) -> list[str]:
    """The files with this text."""
    return [path.name for path in sorted(folder.iterdir()) if text in path.read_bytes()]


@pytest.fixture(autouse=True)
def _no_secure_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some builds of SQLite overwrite what is deleted, and others do not."""

    def plain(path: Path) -> sqlite3.Connection:
        db = connect(path)
        db.execute("PRAGMA secure_delete = OFF")
        return db

    monkeypatch.setattr(keeping, "connect", plain)


@pytest.fixture
def secret(state: Path) -> Path:
    """A file with a name that was written in each of the last 20 days, and with another one."""
    named = {"project": SECRET.decode(), "session": SECRET.decode(), "served": SECRET.decode()}
    path = history(state, [later(-day * DAY, **named) for day in range(20)] + [later(-60) for _ in range(500)])
    db = connect(path)
    with transaction(db):
        write_samples(db, [Sample("p1", "5 hours", SECRET.decode(), round(1000 * NOW), 5.0, None)], Names(db))
    db.close()
    return path


@walked("action", [["history"], ["history", "status"]])
def test_status(action: list[str], run: Run, state: Path) -> None:
    path = state / "history.db"
    if not path.exists():
        history(state, week())
    size = path.stat().st_size / 1000
    status, out, _err = run(*action)
    assert (status, out) == (0, f"""\
on (history.enabled, PROXY_HISTORY: default)
file      {path}, {size:.1f} kB
holds     8 requests since Wed 2026-10-07 10:00, 0 samples of allowances
kept      for 400 days (history.maxAgeDays), up to 536.9 MB (history.maxBytes)
`model-proxy report` shows it, `model-proxy history clear` removes it
""")  # fmt: skip


def test_status_without_a_history(run: Run, tmp_path: Path, state: Path) -> None:
    (tmp_path / "config.json").write_text('{"history": {"enabled": false, "maxAgeDays": 0}}')
    out = run("history")[1]
    assert out.startswith("off (history.enabled, PROXY_HISTORY: config.json)\n")
    assert f"{state / 'history.db'}, not there yet" in out and "for ever" in out and "holds" not in out
    assert run("history", "clear") == (0, f"no history in {state / 'history.db'}, nothing to remove\n", "")
    assert not [*state.iterdir()]


def test_all_of_it_is_removed_without_a_trace(run: Run, secret: Path) -> None:
    assert traces(secret.parent) == ["history.db"]
    size = secret.stat().st_size
    status, out, _err = run("history", "clear")
    assert status == 0 and out.startswith(f"removed 520 requests and 1 sample of allowances from {secret}: ")
    assert traces(secret.parent) == [] == traces(secret.parent, b"gpt-5.5")
    assert secret.stat().st_size < size and count(secret) == 0
    assert "no requests" in run("report")[1]


def test_what_callers_used_today_stays_for_their_limits(run: Run, state: Path) -> None:
    path = history(state, week())
    with Written(path) as written:
        written.put(CallerUse(int(NOW // DAY), "anna", 3, 500))
    run("history", "clear")
    assert rows(path, "SELECT caller, tokens FROM caller_days") == [("anna", 500)]


def test_only_what_is_older_is_removed(run: Run, state: Path) -> None:
    path = history(state, [later(-day * DAY, project=f"project-of-day-{day:02}") for day in range(20)])
    before = run("history", "clear", "--older-than", "2w", "--dry-run")[1]
    assert before == f"would remove 5 requests and 0 samples of allowances from {path}\n" and count(path) == 20
    assert run("history", "clear", "--older-than", "2w")[1].startswith("removed 5 requests")
    assert not traces(state, b"project-of-day-15") and traces(state, b"project-of-day-14") == ["history.db"]
    assert count(path) == 15 and '"requests": 15' in run("report", "--since", "20d", "--by", "caller", "--json")[1]
    assert run("history", "clear", "--older-than", "soon")[0] == 2


def test_a_quarter_of_an_hour_is_removed_or_kept_as_a_whole(run: Run, state: Path) -> None:
    path = history(state, [later(-DAY - 1), later(-DAY + 5), later(-DAY + 300)])
    run("history", "clear", "--older-than", "1435m")  # five minutes less than a day
    assert count(path) == 2 and '"requests": 2' in run("report", "--since", "3d", "--json")[1]


def test_a_proxy_that_writes_goes_on(run: Run, secret: Path) -> None:
    with Written(secret) as written:
        written.put(ended(1, project=SECRET.decode()))
        until(lambda: count(secret) == 521)
        run("history", "clear")
        assert traces(secret.parent) == []
        written.put(ended(2, project="another"))
        until(lambda: count(secret) == 1)
    assert written.told == [] and messages(written.log) == []
    assert rows(secret, "SELECT text FROM requests JOIN names ON names.id = project") == [("another",)]
    assert '"project": "another"' in run("report", "--by", "project", "--json")[1]


def test_a_reader_that_does_not_end_is_told_of(run: Run, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_TRIES", 1)
    monkeypatch.setattr("proxy.observe.history.schema.BUSY_S", 0.05)
    reader = sqlite3.connect(secret, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM requests").fetchone()
    status, _out, err = run("history", "clear")
    assert status == 1 and "another program reads the file" in err
    reader.close()
    assert run("history", "clear")[0] == 0 and traces(secret.parent) == []


def test_a_writer_that_does_not_end_is_told_of(run: Run, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.observe.history.schema.BUSY_S", 0.05)
    writer = sqlite3.connect(secret, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    status, _out, err = run("history", "clear")
    writer.close()
    assert status == 1 and "locked. Another process writes it; try again" in err and count(secret) == 520


def damaged(path: Path) -> None:
    """Overwrites the pages after the first two."""
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database " * 500)


@walked("damage", [damaged, garbage])
def test_a_damaged_file_is_removed_as_a_whole(damage: object, run: Run, state: Path) -> None:
    path = state / "history.db"
    if not path.exists():
        history(state, week())
    damage(path)  # type: ignore[operator]
    (state / "history.db-wal").touch()
    assert "it is damaged" in run("history", "clear", "--older-than", "1d")[2] and path.exists()
    assert "it is damaged" in run("history", "clear", "--dry-run")[2] and path.exists()
    status, out, err = run("history", "clear")
    assert (status, err) == (0, "") and "it was damaged, and nothing could be read of it" in out
    assert not [*state.iterdir()]


def test_on_a_full_disk_the_file_goes_as_a_whole(run: Run, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(keeping, "remove_until", full)
    assert "Make room on its disk" in run("history", "clear", "--older-than", "1d")[2] and secret.exists()
    status, out, _ = run("history", "clear")
    assert status == 0 and "the disk is full" in out and not secret.exists()


def test_a_proxy_whose_file_is_damaged_begins_a_new_one(run: Run, secret: Path) -> None:
    with Written(secret) as written:
        written.put(ended(1))
        until(lambda: count(secret) == 521)
        garbage(secret)
        run("history", "clear")
        written.put(ended(2), ended(3))
        until(lambda: secret.exists() and count(secret) >= 2)
    assert not traces(secret.parent) and rows(secret, "PRAGMA integrity_check") == [("ok",)]


def test_the_file_of_a_newer_version_stays(run: Run, secret: Path) -> None:
    db = sqlite3.connect(secret)
    db.execute("PRAGMA user_version = 99")
    db.close()
    status, _out, err = run("history", "clear")
    assert status == 1 and "a newer version of this program wrote it" in err and secret.exists()
