"""Connections are bounded in number and in time."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from harness import Live, ask, parse_events, until

from proxy.config import Config
from proxy.sandbox import Sandbox
from proxy.server.listener import Listener

IDLE_MS = 150


async def _answer(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_get("/", _answer)
    listener = Listener(app, Config(port=0, max_connections=3, idle_timeout_ms=IDLE_MS), 0.1)
    yield await listener.start()
    await listener.close()


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nX: ", b"HTTP/1.1 200"),
    ],
)
async def test_a_connection_without_a_whole_head_ends_however_slowly_it_sends(
    port: int, sent: bytes, answered: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)

    async def drip() -> None:
        while sent and not sent.endswith(b"\r\n\r\n"):
            writer.write(b"a")
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    try:
        async with asyncio.timeout(10):
            try:
                assert (await reader.read()).startswith(answered)
            except ConnectionResetError:  # it was closed with bytes of ours unread
                assert not answered or sent.count(b"GET") > 1
    finally:
        dripping.cancel()
        writer.close()


async def test_one_connection_too_many_is_told_so_and_closed(port: int) -> None:
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    await asyncio.sleep(0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 503") and b"Retry-After: 1" in answer and b"3 connections at a time" in answer
    for _, link in (*held, (reader, writer)):
        link.close()
        await link.wait_closed()
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()


KEY = "k3y-of-a-caller"
LONG = b"a" * 9000


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"GET / HTTP/9.9\r\n\r\n", "status line"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", "HTTPS"),
        (f"POST / HTTP/1.1\r\nHost: x\r\nx-api-key: {KEY}\0\r\n\r\n".encode(), "header value"),
        (f"POST / HTTP/1.1\r\nHost: x\r\nx-api-key: {KEY}".encode() + LONG + b"\r\n\r\n", "8190 bytes"),
        (f"GET http://[::1/?key={KEY} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), "address"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\n", "Content-Length"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk size"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n junk\r\n\r\n", "method"),
    ],
    ids=["version", "TLS", "NUL", "long header", "address", "length", "chunks", "pipelined"],
)
async def test_what_is_no_http_is_answered_in_a_form_that_clients_read(
    port: int, sent: bytes, words: str, unseen: list[str]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    head, _, body = answer[answer.rindex(b"HTTP/1.") :].partition(b"\r\n\r\n")
    told = json.loads(body)
    assert b" 400 " in head and b"x-should-retry: false" in head and told["type"] == "error"
    assert told["error"]["type"] == "invalid_request_error" and words in told["error"]["message"]
    assert told["request_id"].encode() in head and KEY.encode() not in answer and b"\\n" not in body
    unseen.clear()  # aiohttp's record of it, which the command line makes a short one


async def test_a_start_removes_what_a_killed_save_left(sandbox: Sandbox, tmp_path: Path) -> None:
    state = tmp_path / "state"
    left = [tmp_path / "p1" / ".auth.json.00ff.tmp", state / ".allowances.json.00ff.tmp"]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text("half of a token")
    async with Live(sandbox, tmp_path, state_dir=state):
        assert not any(path.exists() for path in left)


@contextlib.asynccontextmanager
async def alone(live: Live) -> AsyncIterator[str]:
    """The application of `live` behind the listener of a proxy that runs alone, whose connections may be idle for
    IDLE_MS."""
    listener = Listener(live.app, Config(port=0, idle_timeout_ms=IDLE_MS), 0.1)
    port = await listener.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await listener.close()


#: Longer than a connection may be idle.
LONGER_S = 3 * IDLE_MS / 1000


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_may_be_silent_for_longer_than_a_connection_may_be_idle(
    sandbox: Sandbox, tmp_path: Path, stream: bool
) -> None:
    sandbox.p1.script.extend([{"fault": "silence_mid_text", "seconds": LONGER_S}])
    async with (
        alone(Live(sandbox, tmp_path)) as url,
        aiohttp.request("POST", f"{url}/v1/messages", json=ask(stream=stream)) as answer,
    ):
        raw = await answer.read()
        assert answer.status == 200
    assert parse_events(raw)[-1]["type"] == "message_stop" if stream else json.loads(raw)["stop_reason"] == "end_turn"


async def test_a_slow_upload_may_take_longer_than_a_connection_may_be_idle(sandbox: Sandbox, tmp_path: Path) -> None:
    body = json.dumps(ask()).encode()

    async def slowly() -> AsyncIterator[bytes]:
        yield body[:20]
        await asyncio.sleep(LONGER_S)
        yield body[20:]

    headers = {"content-type": "application/json"}
    async with (
        alone(Live(sandbox, tmp_path)) as url,
        aiohttp.request("POST", f"{url}/v1/messages", data=slowly(), headers=headers) as answer,
    ):
        assert answer.status == 200 and json.loads(await answer.read())["stop_reason"] == "end_turn"


async def test_the_monitor_s_events_are_told_for_longer_than_a_connection_may_be_idle(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    async with (
        alone(Live(sandbox, tmp_path)) as url,
        aiohttp.request("GET", f"{url}/monitor/events") as events,
    ):
        assert await events.content.readuntil(b"\n\n")
        await asyncio.sleep(LONGER_S)
        async with aiohttp.request("POST", f"{url}/v1/messages", json=ask(model="nobody")) as answer:
            assert answer.status == 400
        async with asyncio.timeout(10):
            while b"nobody" not in await events.content.readuntil(b"\n\n"):
                pass


@pytest.mark.parametrize("before", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["new", "used"])
async def test_idle_connections_are_closed_before_the_others_have_their_answers(before: bytes) -> None:
    """A client that keeps a connection would send its next request there, and wait for as long as a stream of somebody
    else goes on."""
    released = asyncio.Event()

    async def held(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response(text="late")

    async def finish(_app: web.Application) -> None:
        await released.wait()

    app = web.Application()
    app.router.add_get("/", _answer)
    app.router.add_get("/held", held)
    app.on_shutdown.append(finish)
    listener = Listener(app, Config(port=0), 5.0)
    port = await listener.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(before)
    if before:
        await reader.readuntil(b"ok")
    busy, asking = await asyncio.open_connection("127.0.0.1", port)
    asking.write(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
    await until(lambda: listener.server.requests_count == 1 + bool(before))
    ending = asyncio.create_task(listener.close())
    async with asyncio.timeout(5):
        assert await reader.read() == b""
        assert not ending.done()
        released.set()
        assert (await busy.read()).endswith(b"late")
        await ending
    for one in (writer, asking):
        one.close()
