"""The end of the program: what is served may finish, and whatever is cut is told so."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness import Live, ask, parse_events, raw_request, until

from proxy.config import Config
from proxy.sandbox import Sandbox
from proxy.server.listener import Listener
from proxy.server.request.admission import Running

WORDS = "the proxy stopped before this answer was complete"
#: A model of each wire.
MODELS = {
    "p1": "gpt-5.5",
    "p2": "kimi-k2.6",
    "p3": "grok-4.6",
    "p4 chat": "opencode-go/kimi-k2.6",
    "p4 Messages": "qwen3.8-flash",
    "p5": "cursor:composer-2.5",
}
CHAT = {"model": MODELS["p1"], "messages": [{"role": "user", "content": "hello"}]}
RESPONSES = {"model": MODELS["p2"], "input": "hello"}
NATIVE = {"model": MODELS["p1"], "input": "hello"}


def silent(sandbox: Sandbox) -> None:
    for upstream in (sandbox.p1, sandbox.p2, sandbox.p3, sandbox.p4, sandbox.p5):
        upstream.script.extend([{"fault": "silence_mid_text", "seconds": 60, "times": None}])


class Ending:
    """The application of `live` behind the listener of a proxy that runs alone."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.listener = Listener(live.app, Config(port=0), 1.0)

    async def __aenter__(self) -> Ending:
        self.port = await self.listener.start()
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.listener.close()

    async def asked(self, path: str, body: Any) -> tuple[int, str | None, bytes]:
        async with aiohttp.request("POST", self.url + path, json=body) as answer:
            return answer.status, answer.headers.get("Retry-After"), await answer.read()

    async def cut(self, path: str, body: Any) -> tuple[int, str | None, bytes]:
        """What somebody gets whose answer has begun upstream when the program ends."""
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(self.asked(path, body))
            upstreams = self.live.sandbox.upstreams.values()
            await until(lambda: any(upstream.active for upstream in upstreams), 5)
            tasks.create_task(self.listener.close())
        return asking.result()


@contextlib.asynccontextmanager
async def ending(sandbox: Sandbox, folder: Path, **config: Any) -> AsyncIterator[Ending]:
    async with Ending(Live(sandbox, folder, **{"drain_timeout_ms": 100, "openai_routes": True, **config})) as running:
        yield running


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
async def test_an_answer_that_is_cut_ends_with_an_error(
    sandbox: Sandbox, tmp_path: Path, model: str, stream: bool
) -> None:
    silent(sandbox)
    async with ending(sandbox, tmp_path) as running:
        status, retry, raw = await running.cut("/v1/messages", ask(model=model, stream=stream))
    error = parse_events(raw)[-1] if status == 200 else json.loads(raw)
    assert error["type"] == "error" and error["error"]["message"].startswith(WORDS)
    assert (status, retry) == (503, "1") or (stream and status == 200)
    assert running.live.notes.records[-1][2] == "request_failed"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("stream", [True, False])
async def test_so_it_does_on_the_openai_style_routes(sandbox: Sandbox, tmp_path: Path, path: str, stream: bool) -> None:
    silent(sandbox)
    body = {**(CHAT if path.endswith("completions") else RESPONSES), "stream": stream}
    async with ending(sandbox, tmp_path) as running:
        status, retry, raw = await running.cut(path, body)
    assert WORDS.encode() in raw
    assert (status, retry) == (503, "1") or (stream and status == 200)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_stream_that_is_passed_on_and_cut_has_no_end(sandbox: Sandbox, tmp_path: Path, version: str) -> None:
    """To HTTP/1.0, which balancers speak, a connection that is closed would be one."""
    silent(sandbox)
    body = json.dumps({**NATIVE, "stream": True}).encode()
    request = raw_request("POST /v1/responses", body=body).replace(b"HTTP/1.1", f"HTTP/{version}".encode())
    async with ending(sandbox, tmp_path) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(request)
        received = await reader.readuntil(b"output_text.delta")
        closing = asyncio.ensure_future(running.listener.close())
        try:
            received += await reader.read()
            assert version == "1.1" and not received.endswith(b"0\r\n\r\n")
        except ConnectionResetError:
            assert version == "1.0"
        writer.close()
        await closing


async def test_nobody_stands_in_for_an_answer_that_is_cut(sandbox: Sandbox, tmp_path: Path) -> None:
    silent(sandbox)
    fallback = ((MODELS["p1"], (MODELS["p2"],)),)
    async with ending(sandbox, tmp_path, fallback=fallback) as running:
        status, _, _ = await running.cut("/v1/messages", ask(model=MODELS["p1"]))
    assert status == 503 and not sandbox.p2.requests


async def test_a_body_that_comes_while_others_finish_is_read_and_answered(sandbox: Sandbox, tmp_path: Path) -> None:
    body = json.dumps(ask()).encode()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield body[:20]
        begun.set()
        await ended.wait()
        yield body[20:]

    async with ending(sandbox, tmp_path, drain_timeout_ms=10_000) as running, asyncio.TaskGroup() as tasks:
        headers = {"content-type": "application/json"}
        async with aiohttp.ClientSession() as client:
            asking = tasks.create_task(
                client.post(f"{running.url}/v1/messages", data=slowly(), headers=headers).__aenter__()
            )
            await begun.wait()
            await until(lambda: running.listener.server.requests_count)
            closing = tasks.create_task(running.listener.close())
            await asyncio.sleep(0.05)
            ended.set()
            answer = await asking
            assert (answer.status, answer.headers["Connection"]) == (200, "close")
            assert json.loads(await answer.read())["stop_reason"] == "end_turn"
            await closing


async def test_a_request_that_comes_in_the_moment_of_the_end_is_answered(sandbox: Sandbox, tmp_path: Path) -> None:
    async with ending(sandbox, tmp_path, drain_timeout_ms=10_000) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        await until(lambda: running.listener.server.connections)
        request = raw_request("POST /v1/messages", body=json.dumps(ask()).encode())
        running.listener.server.connections[0].data_received(request)
        await running.listener.close()
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_what_begins_while_the_last_ones_finish_is_waited_for_and_counted() -> None:
    running, over = Running(), asyncio.Event()
    told: list[Any] = []

    async def request(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        with running.one():
            try:
                await over.wait()
            except asyncio.CancelledError:
                told.append(running.stopped())
                told.append(running.stopped())

    async with asyncio.TaskGroup() as tasks:
        for turns in (0, 2, 6):
            tasks.create_task(request(turns))
        await running.drain(0.05)
    assert running.cut == 3 and len(told) == 6
    assert [error.kind for error in told if error is not None] == ["stopping"] * 3


async def test_a_request_that_somebody_else_cancels_too_is_told_nothing() -> None:
    running = Running()

    async def request() -> None:
        with running.one():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                assert running.stopped() is None
                raise

    task = asyncio.ensure_future(request())
    await running.drain(0.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
