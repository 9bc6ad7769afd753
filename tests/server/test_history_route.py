"""`GET /monitor/history`: what it says, to whom, and what becomes of questions that nobody can wait for."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from harness import Live, until, with_live
from samples import rows

from proxy.core.hiding.secret import Secret
from proxy.errors import BusyError, ProxyError
from proxy.observe.history.overview import MAX_PERIODS, overview
from proxy.observe.history.past_request import PastRequest
from proxy.observe.history.queries import Queries, QueryBounds
from proxy.observe.history.schema import FILE_NAME, Names, connect, reading, transaction
from proxy.observe.history.writer import write_requests
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE
from proxy.server.routes import history

PATH = "/monitor/history"
#: A quarter of an hour begins here.
NOW = 1_800_000_000.0
HOUR = 3600.0
EMPTY = PastRequest(*[None] * len(PastRequest._fields))  # type: ignore[arg-type]


def past(hours: float, model: str, **values: Any) -> PastRequest:
    """A request that ended some hours before `NOW`."""
    known = {
        "request": "r",
        "endpoint": "messages",
        "account": "p1",
        "outcome": "completed",
        "total_ms": 900,
        "first_ms": 100,
    }
    counted = {"input": 1000, "output": 10, "cached": 750, "aside": 0, "searches": 0, "retries": 0}
    ended = round(1000 * (NOW - hours * HOUR))
    return EMPTY._replace(**{**known, **counted, "served": model, "ended": ended, **values})


PAST = [past(30, "kimi", account="p2"), past(2, "gpt"), past(2, "gpt", outcome="failed", output=0), past(1, "gpt")]


def file_in(folder: Path) -> Path:
    db = connect(folder / FILE_NAME)
    with transaction(db):
        write_requests(db, PAST, Names(db))
    db.close()
    return folder / FILE_NAME


def asked(*hours: float) -> str:
    """The path for edges some hours before `NOW`."""
    return f"{PATH}?edges={','.join(str(int(NOW - each * HOUR)) for each in hours)}"


@pytest.fixture
async def past_live(sandbox: Sandbox, tmp_path: Path, live_options: dict[str, Any]) -> AsyncIterator[Live]:
    state = tmp_path / "state"
    file_in(state)
    async with Live(sandbox, tmp_path, state_dir=state, clock=lambda: NOW, **live_options) as live:
        yield live


async def test_it_is_the_overview_of_the_file(past_live: Live, tmp_path: Path) -> None:
    answer = await past_live.get(asked(48, 24, 0))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.headers["Cache-Control"] == "no-store"
    with reading(tmp_path / "state" / FILE_NAME) as db:
        assert answer.json == overview(db, [NOW - each * HOUR for each in (48, 24, 0)], NOW)
    assert [(one["requests"], one["failed"]) for one in answer.json["periods"]] == [(1, 0), (3, 1)]
    assert [(one["model"], one["tokens"]) for one in answer.json["models"]] == [("gpt", [0, 3020]), ("kimi", [1010, 0])]
    head = await past_live.request("HEAD", asked(48, 24, 0))
    assert (head.status, head.raw, head.headers["Content-Length"]) == (200, b"", str(len(answer.raw)))


async def test_without_edges_it_is_the_last_seven_days(past_live: Live) -> None:
    told = (await past_live.get(PATH)).json
    assert told["edges"] == [NOW - day * 24 * HOUR for day in range(7, -1, -1)]
    assert told["whole"]["requests"] == 4


@rows(
    "edges, words",
    [
        ("1", "2 to 401 times, not 1"),
        (",".join(str(each) for each in range(MAX_PERIODS + 2)), "2 to 401 times, not 402"),
        ("5,5", "later than the one before"),
        ("1,3,2", "later than the one before"),
        ("1,", "not ''"),
        ("-1,1", "not '-1'"),
        ("1,nan", "not 'nan'"),
        ("1,1e9", "not '1e9'"),
        ("1,1800000000000", "not '1800000000000'"),  # milliseconds
        ("1,%D9%A1%D9%A2", "not '١٢'"),
        ("1," + "x" * 900, "x…'"),
        ("1,2&edges=3,4", "expected once"),
    ],
)
async def test_other_edges_are_refused(live: Live, edges: str, words: str) -> None:
    answer = await live.get(f"{PATH}?edges={edges}")
    assert answer.status == 400 and words in answer.error["message"] and answer.error["message"].startswith("edges: ")


async def test_as_many_edges_as_may_be_are_served(past_live: Live) -> None:
    answer = await past_live.get(asked(*range(MAX_PERIODS, -1, -1)))
    assert answer.status == 200 and len(answer.json["periods"]) == MAX_PERIODS


@with_live(history=False)
async def test_off_it_says_what_turns_it_on(past_live: Live) -> None:
    answer = await past_live.get(PATH)
    assert answer.status == 404 and "PROXY_HISTORY=1" in answer.error["message"]


async def test_without_a_folder_none_is_kept(live: Live) -> None:
    answer = await live.get(PATH)
    assert answer.status == 404 and "no folder for its state" in answer.error["message"]


@rows(
    "headers, words",
    [
        ({"Host": "rebound.example"}, "Host rebound.example is not allowed"),
        ({"Origin": "http://127.0.0.1:1"}, "Origin http://127.0.0.1:1 is not allowed"),
        ({"Sec-Fetch-Site": "cross-site"}, "requests from other web sites are not served"),
    ],
)
async def test_other_web_sites_get_nothing(live: Live, headers: dict[str, str], words: str) -> None:
    answer = await live.get(PATH, **headers)
    assert answer.status == 403 and words in answer.error["message"]


@with_live(allow_remote_unauthenticated=True)
async def test_another_machine_needs_the_key(past_live: Live) -> None:
    with mock.patch("proxy.server.request.guard._is_local", return_value=False):
        assert (await past_live.get(PATH)).status == 403
        past_live.config = past_live.config.changed(type(past_live.config), api_key=Secret("key-1"))
        assert (await past_live.get(PATH)).status == 401
        assert (await past_live.get(PATH, Authorization="Bearer key-1")).status == 200


async def test_a_damaged_file_is_an_error_in_words(past_live: Live, tmp_path: Path) -> None:
    path = tmp_path / "state" / FILE_NAME
    for damage, words in (
        (lambda: path.write_bytes(b"no database" * 1000), "it is damaged"),
        (path.unlink, "none yet"),
    ):
        damage()
        answer = await past_live.get(PATH)
        assert answer.status == 503 and words in answer.error["message"]


# -- questions that take long


class Endless:
    """A question whose answer takes for ever, and what became of it."""

    def __init__(self) -> None:
        self.running = self.ended = 0

    def __call__(self, db: sqlite3.Connection, *_rest: object) -> dict[str, Any]:
        self.running += 1
        try:
            db.execute(
                "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"
            ).fetchone()
        finally:
            self.running -= 1
            self.ended += 1
        raise AssertionError("it has an end")


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Endless:
    question = Endless()
    monkeypatch.setattr(history, "overview", question)
    return question


async def test_whoever_leaves_ends_the_question(past_live: Live, endless: Endless) -> None:
    asking = asyncio.create_task(past_live.get(PATH))
    await until(lambda: endless.running)
    asking.cancel()
    await until(lambda: endless.ended)
    await until(lambda: not past_live.app[STATE].queries._free.locked())


@with_live(handler_cancellation=False)
async def test_so_it_does_where_a_program_that_embeds_cancels_nothing(past_live: Live, endless: Endless) -> None:
    await test_whoever_leaves_ends_the_question(past_live, endless)


async def test_the_end_of_the_application_ends_it_too(past_live: Live, endless: Endless) -> None:
    asking = asyncio.create_task(past_live.get(PATH))
    await until(lambda: endless.running)
    past_live.app[STATE].watchers.close()
    await until(lambda: endless.ended)
    asking.cancel()


def never() -> bool:
    return False


async def test_a_question_is_given_up_after_a_time(tmp_path: Path) -> None:
    queries, question = Queries(QueryBounds(longest_s=0.02)), Endless()
    with pytest.raises(ProxyError, match="it took too long") as raised:
        await queries.ask(file_in(tmp_path), question, never)
    assert raised.value.status == 503
    assert await queries.ask(tmp_path / FILE_NAME, lambda db: db.execute("SELECT 7").fetchone()[0], never) == 7


async def test_a_few_run_a_few_wait_and_the_others_are_refused(tmp_path: Path) -> None:
    path, question = file_in(tmp_path), Endless()
    queries = Queries(QueryBounds(running=1, waiting=2))
    first = asyncio.create_task(queries.ask(path, question, never))
    await until(lambda: question.running)
    others = [asyncio.create_task(queries.ask(path, sessions, never)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(BusyError, match="wait already"):
        await queries.ask(path, sessions, never)
    assert not any(other.done() for other in others)
    first.cancel()
    assert await asyncio.gather(*others) == [4, 4]
    assert question.ended == 1


def sessions(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM requests").fetchone()[0])


async def test_one_that_waits_and_leaves_makes_room(tmp_path: Path) -> None:
    path, question = file_in(tmp_path), Endless()
    queries = Queries(QueryBounds(running=1, waiting=1))
    first = asyncio.create_task(queries.ask(path, question, never))
    await until(lambda: question.running)
    second = asyncio.create_task(queries.ask(path, sessions, never))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    third = asyncio.create_task(queries.ask(path, sessions, never))
    await asyncio.sleep(0)
    first.cancel()
    assert await third == 4


async def test_a_question_that_waits_has_an_end_too(tmp_path: Path) -> None:
    path, question = file_in(tmp_path), Endless()
    queries = Queries(QueryBounds(running=1, longest_s=0.6))
    first = asyncio.create_task(queries.ask(path, question, never))
    await until(lambda: question.running)
    leaves = asyncio.create_task(queries.ask(path, sessions, lambda: True))
    with pytest.raises(ConnectionResetError):
        await leaves
    with pytest.raises(ProxyError, match="it took too long"):
        await first
    assert await queries.ask(path, sessions, never) == 4


async def test_a_question_waits_for_no_writer_and_writes_nothing(tmp_path: Path) -> None:
    path = file_in(tmp_path)
    writer = sqlite3.connect(path, isolation_level=None)
    state = writer.execute("PRAGMA data_version").fetchone()
    writer.execute("BEGIN IMMEDIATE")
    before = {one.name: one.stat().st_size for one in tmp_path.glob("history.db*")}
    assert await Queries(QueryBounds(longest_s=2)).ask(path, sessions, never) == 4
    assert {one.name: one.stat().st_size for one in tmp_path.glob("history.db*")} == before
    writer.execute("ROLLBACK")
    assert writer.execute("PRAGMA data_version").fetchone() == state
    writer.close()


async def test_a_question_only_reads(tmp_path: Path) -> None:
    with pytest.raises(ProxyError, match="readonly"):
        await Queries().ask(file_in(tmp_path), lambda db: db.execute("DELETE FROM requests").rowcount, never)
