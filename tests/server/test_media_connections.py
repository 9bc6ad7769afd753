"""What happens on the connections of the routes of images and audio: bodies that are not sent, refused or slow, clients
that leave, and how many are served at one time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import Answer, Live, until, watch_often, with_live
from media_live import (
    EDITS,
    GENERATIONS,
    GOOD,
    PNG,
    ROUTES,
    SWITCHES,
    TRANSCRIPTIONS,
    Studio,
    edit,
    head,
    read_answer,
    recording,
    refusal,
    send,
    studio,
)
from samples import rows

from proxy.core.media.pieces import Pieces
from proxy.observe.lifecycle import Abandoned
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

MIB = 1024 * 1024
JSON = "application/json"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.fixture
def live_options() -> dict[str, Any]:
    return dict(SWITCHES)


class Connection:
    """One connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, data: bytes) -> Answer:
        self.writer.write(data)
        return await read_answer(self.reader)

    async def ended(self) -> bool:
        """Whether the other side closes."""
        async with asyncio.timeout(10):
            return not await self.reader.read(1)

    def leave(self) -> None:
        self.writer.transport.abort()


@asynccontextmanager
async def connected(live: Live) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


def whole(path: str, body: bytes | None = None, **headers: Any) -> bytes:
    """A request with its body."""
    good, called = GOOD[path]
    body = good if body is None else body
    return head(path, called, Content_Length=len(body), **headers) + body


def held(live: Live) -> tuple[int, int]:
    """Requests and bytes that are admitted."""
    admission = live.app[STATE].admission
    return sum(admission.counts.values()), admission.bytes


# -- bodies that are refused


@rows("path", ROUTES)
async def test_a_client_that_waits_is_told_to_go_on_once_its_body_is_wanted(live: Live, path: str) -> None:
    studio(live)
    body, called = GOOD[path]
    async with connected(live) as connection:
        connection.writer.write(head(path, called, Content_Length=len(body), Expect="100-Continue"))
        assert await connection.reader.readexactly(len(CONTINUE)) == CONTINUE
        assert (await connection.ask(body)).status == 200
        assert (await connection.ask(whole(path))).status == 200


#: a head whose body is not wanted
UNWANTED = [
    (EDITS, "multipart/form-data; boundary=b", 65 * MIB, {}, 413),
    (EDITS, JSON, 65 * MIB, {}, 413),
    (f"{EDITS}?x=1", JSON, 1000, {}, 400),
    (TRANSCRIPTIONS, "audio/wav", 1000, {}, 415),
    (GENERATIONS, JSON, 1000, {"Origin": "https://evil.example"}, 403),
    ("/v1/messages", "text/plain", 1000, {}, 415),
]


@rows("waits", [True, False])
@rows("path, called, length, headers, status", UNWANTED)
async def test_a_refusal_comes_before_the_body_and_ends_the_connection(
    live: Live, path: str, called: str, length: int, headers: dict[str, str], status: int, waits: bool
) -> None:
    """Whoever sends on all the same: it is not taken for a request."""
    studio(live)
    expect = {"Expect": "100-continue"} if waits else {}
    async with connected(live) as connection:
        answer = await connection.ask(head(path, called, Content_Length=length, **expect, **headers))
        assert answer.status == status and answer.headers["Connection"] == "close"
        if not waits:
            connection.writer.write(b"x" * min(length, 1000) + whole(GENERATIONS))
        connection.writer.write_eof()
        assert await connection.ended()


async def test_a_refusal_in_the_middle_of_a_body_ends_the_connection(live: Live) -> None:
    studio(live)
    form = edit(b"no image", mask="x")
    async with connected(live) as connection:
        answer = await connection.ask(head(EDITS, form.content_type, Content_Length=60 * MIB) + form.body)
        assert refusal(answer) == (400, "unsupported_parameter", "mask") and answer.headers["Connection"] == "close"
        connection.writer.write_eof()
        assert await connection.ended()


async def test_a_refusal_behind_a_whole_body_leaves_the_connection(live: Live) -> None:
    made = studio(live)
    async with connected(live) as connection:
        for path, body in (
            (GENERATIONS, b"{"),
            (EDITS, edit(b"hello").body),
            (TRANSCRIPTIONS, recording(temperature="1").body),
            (GENERATIONS, b""),
        ):
            answer = await connection.ask(whole(path, body) + whole(GENERATIONS))
            assert refusal(answer)[0] == 400 and "Connection" not in answer.headers
            assert (await read_answer(connection.reader)).status == 200
    assert len(made.asked) == 4


@with_live(**SWITCHES, body_idle_timeout_ms=50)
async def test_a_body_that_does_not_come_is_given_up(live: Live) -> None:
    made = studio(live)
    async with connected(live) as connection:
        answer = await connection.ask(head(EDITS, JSON, Content_Length=1000) + b"{")
        assert refusal(answer) == (408, "request_timeout", None) and answer.headers["Connection"] == "close"
    await until(lambda: held(live) == (0, 0))
    assert not made.asked


# -- how much is held


@with_live(**SWITCHES, max_buffered_bytes=4 * MIB)
async def test_images_count_as_the_base64_that_they_become_until_the_service_has_them(live: Live) -> None:
    made = studio(live)
    made.gate.clear()
    request = whole(EDITS, edit(PNG.ljust(2 * MIB, b"\0")).body)
    async with connected(live) as first:
        first.writer.write(request)
        await until(lambda: made.asked)
        assert 2.9 * MIB < held(live)[1] < 3.1 * MIB
        async with connected(live) as second:
            answer = await second.ask(request)
        assert refusal(answer) == (429, "local_capacity_exceeded", None) and answer.headers["Retry-After"] == "1"
        made.asked[0][0].sent()
        assert held(live)[1] == 0
        made.gate.set()
        assert (await read_answer(first.reader)).status == 200
        assert (await first.ask(request)).status == 200
    await until(lambda: held(live) == (0, 0))


# -- how many are served


@pytest.mark.parametrize(("paths", "room"), [((GENERATIONS, EDITS), 2), ((TRANSCRIPTIONS,), 4)])
async def test_who_finds_no_room_is_told_to_come_back(live: Live, paths: tuple[str, ...], room: int) -> None:
    made = studio(live)
    made.gate.clear()
    waiting = [asyncio.ensure_future(send(live, paths[place % len(paths)])) for place in range(room)]
    await until(lambda: made.active == room)
    for path in paths:
        answer = await send(live, path)
        assert refusal(answer) == (429, "local_capacity_exceeded", None) and answer.headers["Retry-After"] == "1"
        assert answer.json["error"]["type"] == "rate_limit_error" and "x-should-retry" not in answer.headers
        wrong = await send(live, path, b"{")
        assert wrong.status == 400  # said before there is room
    other = TRANSCRIPTIONS if GENERATIONS in paths else GENERATIONS
    waiting.append(asyncio.ensure_future(send(live, other)))
    await until(lambda: made.active == room + 1)
    waiting[0].cancel()
    await until(lambda: made.active == room)
    waiting[0] = asyncio.ensure_future(send(live, paths[0]))
    await until(lambda: made.active == room + 1)
    made.gate.set()
    assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}
    await until(lambda: held(live) == (0, 0))


# -- clients that leave


@asynccontextmanager
async def media(sandbox: Sandbox, root: Path, *, cancels: bool) -> AsyncIterator[tuple[Live, Studio]]:
    options: dict[str, Any] = {"handler_cancellation": cancels, "tuning": (watch_often(),), **SWITCHES}
    async with Live(sandbox, root, **options) as live:
        yield live, studio(live)


async def gone(live: Live, made: Studio) -> None:
    """Whoever was served has left: noted once, and nothing of it is held."""
    await until(lambda: held(live) == (0, 0) and made.active == 0, 1.0)
    await until(lambda: isinstance(live.watcher.last[-1], Abandoned))
    assert live.watcher.names.count("Abandoned") == 1
    assert live.notes.all("request_failed")[-1]["message"].endswith("the client left")
    assert not live.notes.all("internal_error")


@pytest.mark.parametrize("cancels", [True, False], ids=["cancelled", "watched"])
@pytest.mark.parametrize("path", ROUTES)
async def test_a_client_may_leave_while_its_body_is_read(
    sandbox: Sandbox, tmp_path: Path, path: str, cancels: bool
) -> None:
    async with media(sandbox, tmp_path, cancels=cancels) as (live, made), connected(live) as connection:
        connection.writer.write(whole(path)[:-10])
        await until(lambda: held(live)[0])
        await asyncio.sleep(0.02)
        connection.leave()
        await gone(live, made)
        assert not made.asked


@pytest.mark.parametrize("cancels", [True, False], ids=["cancelled", "watched"])
@pytest.mark.parametrize("path", ROUTES)
async def test_a_client_may_leave_while_it_waits(sandbox: Sandbox, tmp_path: Path, path: str, cancels: bool) -> None:
    async with media(sandbox, tmp_path, cancels=cancels) as (live, made), connected(live) as connection:
        made.gate.clear()
        connection.writer.write(whole(path))
        await until(lambda: made.active)
        connection.leave()
        await gone(live, made)


@pytest.mark.parametrize("cancels", [True, False], ids=["cancelled", "watched"])
async def test_a_client_may_leave_while_its_answer_is_written(sandbox: Sandbox, tmp_path: Path, cancels: bool) -> None:
    """What it did not read was not written: the rest of the pieces is still there."""
    pieces = Pieces([bytes(MIB)] * 64)
    async with media(sandbox, tmp_path, cancels=cancels) as (live, made), connected(live) as connection:
        made.body = lambda: pieces
        connection.writer.write(whole(GENERATIONS))
        await connection.reader.readexactly(MIB)
        await asyncio.sleep(0.05)
        assert len(list(pieces)) > 128
        connection.leave()
        await gone(live, made)


async def test_a_client_that_reads_nothing_is_given_up(sandbox: Sandbox, tmp_path: Path) -> None:
    options: dict[str, Any] = {"tuning": (watch_often(stall=0.1),), **SWITCHES}
    async with Live(sandbox, tmp_path, **options) as live, connected(live) as connection:
        made = studio(live)
        made.body = lambda: Pieces([bytes(MIB)] * 64)
        connection.writer.write(whole(GENERATIONS))
        await until(lambda: isinstance(live.watcher.last[-1], Abandoned) if live.watcher.told else False)
        await until(lambda: held(live) == (0, 0))
