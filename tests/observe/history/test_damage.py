"""A file whose bytes were changed: whoever reads it is told, or gets an answer, and the writer goes on."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import examples

from observe.history.past import NOW, Written, ended, history, later
from proxy.observe.history.conversations import conversations, sessions_like, turns
from proxy.observe.history.overview import overview
from proxy.observe.history.problems import NewerHistory, problem_of
from proxy.observe.history.schema import connect, reading
from proxy.observe.history.usage import BY, read_usage

Damage = Callable[[bytearray, random.Random], None]


def flipped(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 3, 40))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def overwritten(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    data[at : at + 300] = chance.randbytes(300)


def in_the_head(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(100)] ^= 1 << chance.randrange(8)


def moved(data: bytearray, chance: random.Random) -> None:
    """A page in another one's place."""
    pages = len(data) // 4096
    one, other = (4096 * chance.randrange(pages) for _ in range(2))
    data[one : one + 4096] = data[other : other + 4096]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    requests = [later(40 * n, session=f"s{n % 9}", project=f"p{n % 4}", served=f"m{n % 3}") for n in range(400)]
    path = history(tmp_path_factory.mktemp("whole"), requests)
    db = connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return path.read_bytes()


@pytest.mark.parametrize("damage", [flipped, cut, overwritten, in_the_head, moved])
def test_a_damaged_file_is_told_of_or_read(damage: Damage, whole: bytes, tmp_path: Path) -> None:
    told = read = 0
    for seed in range(examples(320)):
        data = bytearray(whole)
        damage(data, random.Random(seed))
        path = tmp_path / f"{seed}.db"
        path.write_bytes(data)
        try:
            _read(path)
            read += 1
        except (sqlite3.Error, OSError, NewerHistory) as error:
            assert problem_of(error)
            told += 1
    assert told and (read or damage is cut)


def _read(path: Path) -> None:
    with reading(path) as db:
        overview(db, [NOW + 3600 * n for n in range(6)], NOW + 6 * 3600)
        for group in BY.values():
            read_usage(db, group.dimension, [NOW, NOW + 6 * 3600], group.key)
        for one in conversations(db, NOW, NOW + 6 * 3600, 5):
            turns(db, one.session)
        sessions_like(db, "s")


@pytest.mark.parametrize("damage", [flipped, overwritten, in_the_head])
def test_a_writer_goes_on_beside_a_damaged_file(damage: Damage, whole: bytes, tmp_path: Path) -> None:
    for seed in range(examples(64)):
        data = bytearray(whole)
        damage(data, random.Random(seed))
        path = tmp_path / f"{seed}.db"
        path.write_bytes(data)
        with Written(path) as written:
            written.put(*map(ended, range(3)))
        assert written.writer._thread is not None and not written.writer._thread.is_alive(), seed
        assert len(written.log.records) <= 3, written.log.records
