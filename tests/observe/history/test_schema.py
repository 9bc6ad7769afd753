"""The file of the history: its rights, its versions, and what older files become."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from observe.history.past import NOW, history, later, rows
from proxy.observe.history.past_request import COLUMNS, NAMED
from proxy.observe.history.problems import NewerHistory
from proxy.observe.history.schema import VERSION, connect, reading
from proxy.observe.history.sums import SUMMED
from proxy.observe.history.usage import BY, read_usage

_OLD = sorted(Path(__file__).parent.glob("version_*.sql"))


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = history(tmp_path / "new" / "folder", [later(0)])
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]
    with reading(path):
        assert {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()} == {0o600}


def test_its_columns_are_those_of_the_code(tmp_path: Path) -> None:
    path = history(tmp_path)
    assert [name for (name,) in rows(path, "SELECT name FROM pragma_table_info('requests')")] == ["id", *COLUMNS]
    sums = [name for (name,) in rows(path, "SELECT name FROM pragma_table_info('sums')")]
    assert sums == ["dimension", "quarter", "value", "model", *SUMMED, "first", "total"]
    assert set(COLUMNS) >= NAMED


def test_there_is_a_file_of_every_older_version() -> None:
    assert [path.stem for path in _OLD] == [f"version_{number}" for number in range(1, VERSION)]


@pytest.mark.parametrize("old", _OLD, ids=lambda path: path.stem)
def test_an_older_file_keeps_all_it_has_and_reports_as_a_new_one(old: Path, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    db = sqlite3.connect(path)
    db.executescript(old.read_text())
    before = db.execute("SELECT * FROM requests").fetchall()
    db.close()
    with reading(path) as found:
        assert found.execute("SELECT * FROM requests").fetchall() == before
        group = BY["model"]
        ((key, usage),) = read_usage(found, group.dimension, [NOW, NOW + 1800], group.key).items()
        assert found.execute("SELECT count(*) FROM allowances").fetchone() == (1,)
    assert key == ("p1", "gpt-5.5")
    assert (usage.requests, usage.failed, usage.input, usage.cached, usage.searches) == (3, 1, 3000, 2700, 3)
    assert usage.first_ms(0.5) == pytest.approx(801, rel=0.03) and usage.total_ms(1) == pytest.approx(5000, rel=0.03)
    assert rows(path, "PRAGMA user_version") == [(VERSION,)] and rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_step_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.db"
    db = sqlite3.connect(path)
    db.executescript(_OLD[0].read_text())
    db.close()
    from proxy.observe.history import schema

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:2], "CREATE TABLE names (id INTEGER)"))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        connect(path)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sums'").fetchone() == (0,)
    db.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = history(tmp_path, [later(0)])
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(NewerHistory, match=f"version {VERSION + 1}"):
        connect(path)
    assert path.read_bytes() == before


def test_a_file_in_a_folder_that_cannot_be_written_is_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = history(tmp_path, [later(0)])
    monkeypatch.setattr(os, "access", lambda *_given: False)
    before = {one.name for one in tmp_path.iterdir()}
    with reading(path) as db:
        assert db.execute("SELECT count(*) FROM requests").fetchone() == (1,)
        assert {one.name for one in tmp_path.iterdir()} == before


def test_reading_makes_no_file_and_changes_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), reading(tmp_path / "history.db"):
        pass
    assert list(tmp_path.iterdir()) == []
    with reading(history(tmp_path)) as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM names")
