"""A long event to a client that reads nothing, within an answer that flows."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask, until, watch_often
from raw_upstream import chunk, head

from proxy.sandbox import Sandbox
from proxy.server.serving.stream import AnswerWriter

MODEL = "kimi-for-coding"
#: Larger than what a socket of the smallest buffer takes, and more than one write may leave waiting (64 KiB).
LONG_CHARS = 110_000
APART_S = 0.03


def said(text: str) -> bytes:
    delta = {"content": text}
    event = {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return chunk(b"data: %b\n\n" % json.dumps(event).encode())


@asynccontextmanager
async def upstream() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """Says a word, then a long event in pieces of one read each, then nothing. Its port, and whether it was left."""
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        long = said("x" * LONG_CHARS)
        pieces = [long[at : at + 28_000] for at in range(0, len(long), 28_000)]
        for piece in (head("transfer-encoding: chunked") + said("hi"), *pieces):
            writer.write(piece)
            await asyncio.sleep(APART_S)
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass
        left.set()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], left


@asynccontextmanager
async def client_that_reads_nothing(live: Live) -> AsyncIterator[socket.socket]:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", live.port))
        body = json.dumps(ask(model=MODEL, stream=True)).encode()
        request = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        await loop.sock_sendall(client, request + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        yield client


@pytest.fixture
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The kernel holds next to nothing for the client. Sizes of what was written."""
    wrote, sizes = AnswerWriter._wrote, list[int]()

    def noted(self: AnswerWriter, data: bytes, events: int) -> None:
        transport: Any = self._ledger.inquiry.request.transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sizes.append(len(data))
        wrote(self, data, events)

    monkeypatch.setattr(AnswerWriter, "_wrote", noted)
    return sizes


async def test_it_is_given_up_while_the_upstream_is_silent(
    sandbox: Sandbox, tmp_path: Path, small_buffers: list[int]
) -> None:
    """A wait of aiohttp's `write` that is dropped is never made up for: nothing would look stalled."""
    async with upstream() as (port, left):
        settings = sandbox.settings()
        settings["PROXY_P2_BASE_URL"] = settings["PROXY_P2_BASE_URL"].replace(f":{sandbox.port}", f":{port}")
        options: dict[str, Any] = {"settings": settings, "tuning": (watch_often(stall=0.3),)}
        async with Live(sandbox, tmp_path, **options) as live, client_that_reads_nothing(live):
            await until(left.is_set)
            assert live.watcher.names[-1] == "Abandoned"


async def test_no_exception_is_lost_when_it_resets_the_connection(
    sandbox: Sandbox, tmp_path: Path, small_buffers: list[int], unseen: list[str]
) -> None:
    """The future of a wait that is dropped gets one when the client resets the connection."""
    async with upstream() as (port, left):
        settings = sandbox.settings()
        settings["PROXY_P2_BASE_URL"] = settings["PROXY_P2_BASE_URL"].replace(f":{sandbox.port}", f":{port}")
        options: dict[str, Any] = {"settings": settings, "tuning": (watch_often(),)}
        async with Live(sandbox, tmp_path, **options) as live, client_that_reads_nothing(live) as client:
            await asyncio.sleep(10 * APART_S)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            await until(left.is_set)
        gc.collect()
        lost, unseen[:] = [*unseen], []
        assert not lost
