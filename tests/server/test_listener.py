"""Connections are bounded in number and in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from harness import Live

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
        async with asyncio.timeout(3):
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
    async with asyncio.timeout(3):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 503") and b"Retry-After: 1" in answer and b"3 connections at a time" in answer
    for _, link in (*held, (reader, writer)):
        link.close()
        await link.wait_closed()
    async with asyncio.timeout(3):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_start_removes_what_a_killed_save_left(sandbox: Sandbox, tmp_path: Path) -> None:
    state = tmp_path / "state"
    left = [tmp_path / "p1" / ".auth.json.00ff.tmp", state / ".allowances.json.00ff.tmp"]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text("half of a token")
    async with Live(sandbox, tmp_path, state_dir=state):
        assert not any(path.exists() for path in left)
