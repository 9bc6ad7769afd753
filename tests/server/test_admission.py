"""How much is served at one time, and that everything taken is given back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from harness import Answer, Fake, Live, ask, played, raw_request, until, use, whole_message, with_live
from openai_live import BOTH, P1, P2, body_for

from proxy.observe.lifecycle import Abandoned
from proxy.providers.upstream.tokenizer import TokenizerLimits
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

SESSION = {"x-claude-code-session-id": "s"}


def gated(live: Live, label: str, gate: asyncio.Event) -> Fake:
    """A provider that answers when the gate opens."""
    return use(live, Fake(label, played(gate, whole_message("gpt-5.5", "fine"))))


def start(live: Live, count: int = 1, body: Any = None, **headers: str) -> list[asyncio.Future[Answer]]:
    return [asyncio.ensure_future(live.post(body or ask(), headers=headers)) for _ in range(count)]


async def all_answered(live: Live, gate: asyncio.Event, waiting: list[asyncio.Future[Answer]]) -> None:
    gate.set()
    assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}
    await until(lambda: held(live) == (0, 0))


def held(live: Live) -> tuple[int, int]:
    """Requests and bytes that are admitted."""
    admission = live.app[STATE].admission
    return sum(admission.counts.values()), admission.bytes


def busy(answer: Answer) -> str:
    assert answer.status == 429 and answer.error["type"] == "overloaded_error"
    assert answer.headers["Retry-After"] == "1" and "x-should-retry" not in answer.headers
    message: str = answer.error["message"]
    return message


async def test_the_request_past_the_limit_of_a_session_is_told_to_come_back(live: Live) -> None:
    gate = asyncio.Event()
    provider = gated(live, "p1", gate)
    waiting = start(live, 24, **SESSION)
    await until(lambda: len(provider.calls) == 24)
    assert busy(await live.post(ask(), headers=SESSION)).startswith("busy: 24 requests")
    waiting += start(live, **{"x-claude-code-session-id": "t"})
    await until(lambda: len(provider.calls) == 25)
    await all_answered(live, gate, waiting)
    assert (await live.post(ask(), headers=SESSION)).status == 200
    await until(lambda: held(live) == (0, 0))


@with_live(max_concurrent_per_session=1)
async def test_a_client_that_has_its_whole_answer_may_ask_again(live: Live) -> None:
    """It reads the end of the body before we are done: the connection to the service is read on, a socket closed."""
    gate = asyncio.Event()
    provider = use(live, Fake("p1", played(whole_message("gpt-5.5", "fine"), gate)))
    asked = raw_request("POST /v1/messages", "x-claude-code-session-id: s", body=json.dumps(ask(stream=True)).encode())
    writers = []
    for _ in range(2):
        reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
        writers.append(writer)
        writer.write(asked)
        async with asyncio.timeout(5):
            received = await reader.readuntil(b"0\r\n\r\n")
        assert received.startswith(b"HTTP/1.1 200 OK\r\n") and b"message_stop" in received
    assert len(provider.calls) == 2
    gate.set()
    await until(lambda: held(live) == (0, 0) and provider.closed == 2)
    for writer in writers:
        writer.close()


@with_live(max_concurrent=3, max_concurrent_per_provider=2)
async def test_everybody_together_and_each_provider_have_limits(live: Live) -> None:
    """A refused request does not change its session."""
    gate = asyncio.Event()
    first, second = gated(live, "p1", gate), gated(live, "p2", gate)
    waiting = start(live, body=ask(model="kimi-k2.6"))
    await until(lambda: len(second.calls) == 1)
    waiting += start(live, 2)
    await until(lambda: len(first.calls) == 2)
    assert "in all" in busy(await live.post(ask(model="kimi-k2.6"), headers=SESSION))
    assert (await live.get("/v1/models")).status == 200
    await all_answered(live, gate, waiting)
    gate.clear()
    waiting = start(live, 2, body=ask(model="kimi-k2.6"))
    await until(lambda: len(second.calls) == 3)
    assert "by p2" in busy(await live.post(ask(model="kimi-k2.6"), headers=SESSION))
    await all_answered(live, gate, waiting)
    assert live.app[STATE].sessions.affinity("s") is None


@with_live(max_buffered_bytes=150_000)
async def test_bodies_held_together_are_bounded(live: Live) -> None:
    gate, large = asyncio.Event(), ask("x" * 100_000)
    provider = gated(live, "p1", gate)
    waiting = start(live, body=large)
    await until(lambda: provider.calls)
    assert "bytes" in busy(await live.post(large))
    await all_answered(live, gate, waiting)
    assert (await live.post(large)).status == 200
    await until(lambda: held(live) == (0, 0))


@pytest.mark.parametrize(
    "body",
    [ask(), ask(stream=True), ask(model="nobody"), b"{", ask(output_config={"effort": "wrong"}), ask("use 7", tools=7)],
)
async def test_every_way_out_gives_everything_back(live: Live, body: Any) -> None:
    for _ in range(3):
        await live.post(body, headers=SESSION)
    await until(lambda: held(live) == (0, 0))


#: route, model, what the upstream does when its clients leave, and whether the runner cancels handlers then
LEAVING = [
    *(("/v1/messages", P1, fault, False) for fault in ("silence_before_head", "silence_mid_text")),
    *(("/v1/messages", P1, "silence_after_created", cancels) for cancels in (True, False)),
    *((path, model, "silence_mid_text", True) for path in BOTH for model in (P1, P2)),
]


@pytest.mark.parametrize(("path", "model", "fault", "cancels"), LEAVING)
@pytest.mark.parametrize("stream", [True, False])
async def test_clients_that_leave_release_the_upstream_within_a_second_and_give_everything_back(
    sandbox: Sandbox, tmp_path: Path, path: str, model: str, fault: str, cancels: bool, stream: bool
) -> None:
    upstream: Any = sandbox.p1 if model == P1 else sandbox.p2
    upstream.script.extend([{"fault": fault, "seconds": None, "times": 5}])
    body = {**(ask(model=model) if path == "/v1/messages" else body_for(path, model=model)), "stream": stream}
    settings: dict[str, Any] = {"mount": "/models/ai", "handler_cancellation": cancels, "openai_routes": True}
    async with Live(sandbox, tmp_path, **settings) as live:
        tasks = [asyncio.ensure_future(live.post(body, path)) for _ in range(5)]
        await until(lambda: upstream.active == 5)
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await upstream.idle(1.0)
        await until(lambda: held(live) == (0, 0), 1.0)
        for told in live.watcher.told.values():
            assert [type(event) for event in told].count(Abandoned) == 1 and isinstance(told[-1], Abandoned)
        left = [fields["message"].endswith("the client left") for fields in live.notes.all("request_failed")]
        assert left == [True] * 5


@pytest.mark.parametrize("counting", [True, False], ids=["count", "message"])
@with_live(tuning=(TokenizerLimits(wait_s=0.0),))
async def test_only_a_count_that_waits_too_long_is_refused(live: Live, counting: bool) -> None:
    if counting:
        answer = await live.post(ask(), "/v1/messages/count_tokens")
        assert answer.status == 503 and answer.error["type"] == "api_error" and answer.headers["Retry-After"] == "1"
    else:
        answer = await live.stream(ask())
        assert answer.status == 200 and answer.events[0]["message"]["usage"]["input_tokens"] > 0
