"""Nothing that a request is made of refers to itself: it goes when its answer is out, and not when the collector comes
around. Until then it would be held, and freeing what has gathered stops the loop for milliseconds."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask, tool, watch_often
from samples import each

from proxy.core.messages import Fold
from proxy.sandbox import Sandbox

MODELS = [
    ("gpt-5.5", "http"),
    ("gpt-5.5", "websocket"),
    ("gpt-5.6-sol", "websocket"),
    ("kimi-for-coding", "http"),
    ("grok-4.6", "http"),
    ("opencode-go/kimi-k2.6", "http"),
    ("minimax-m3", "http"),
    ("opencode-go/gpt-5.6-luna", "http"),
    ("cursor:gpt-5.5", "http"),
]
#: A connection is a circle of the library's. A run of p5 and its parts refer to each other, and to nothing of a request
#: but what the run was begun with.
CIRCLES = {"_Connection"}
RUN = {"Run", "RunOutput", "RunTimers", "RunWatch", "Channels", "Appends", "ServiceRequests", "Blobs"}
RUN |= {"OpenCalls", "WaitingEvents", "Timings", "Owner"}
ROUNDS = 3


async def stream(live: Live, model: str) -> None:
    await live.stream(ask("stream 30 words", model=model), headers={})


async def whole(live: Live, model: str) -> None:
    await live.post(ask("stream 30 words", model=model), headers={})


async def session(live: Live, model: str) -> None:
    """With a call, and its result."""
    headers = {"x-claude-code-session-id": f"session-{model}"}
    body = ask("use Bash: ls", model=model, tools=[tool()])
    fold = Fold()
    fold.add((await live.stream(body, headers=headers)).events)
    called = fold.message
    [call] = [block for block in called["content"] if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "a b"}
    turns = [{"role": "assistant", "content": called["content"]}, {"role": "user", "content": [result]}]
    await live.stream({**body, "messages": [*body["messages"], *turns]}, headers=headers)


async def openai(live: Live, model: str) -> None:
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "stream 30 words"}]}
    async with live.client.post(f"{live.url}/v1/chat/completions", json=body) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()


async def responses(live: Live, model: str) -> None:
    body = {"model": model, "stream": True, "input": "stream 30 words"}
    async with live.client.post(f"{live.url}/v1/responses", json=body) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()


async def refused(live: Live, model: str) -> None:
    answer = await live.post(ask("hi", model=model, thread="t"), headers={})
    assert answer.status == 400


async def passed_on(live: Live, model: str) -> None:
    """A refusal that clients of p1's own API get as it is; elsewhere an error."""
    provider = "p1" if model.startswith("gpt-") else "p2" if model.startswith("kimi-") else ""
    if provider:
        body = {"error": {"type": "invalid_request_error", "message": "odd"}}
        live.sandbox[provider].script.extend([{"provider": provider, "status": 400, "body": body}])
    body = {"model": model, "input": "hi"}
    async with live.client.post(f"{live.url}/v1/responses", json=body) as answer:
        assert answer.status == (400 if provider else 200), await answer.text()


async def left(live: Live, model: str) -> None:
    async with live.open({**ask("stream 4000 words", model=model), "stream": True}) as answer:
        await answer.content.readany()


SHAPES: list[Callable[[Live, str], Awaitable[None]]] = [
    stream,
    whole,
    session,
    openai,
    responses,
    refused,
    passed_on,
    left,
]


@pytest.fixture
async def live_at(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Live]:
    async with (
        Sandbox() as sandbox,
        Live(sandbox, tmp_path, p1_transport=request.param, openai_routes=True, tuning=(watch_often(),)) as live,
    ):
        yield live


@each(1)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize(("model", "live_at"), MODELS, indirect=["live_at"])
async def test_a_request_leaves_nothing_to_the_collector(
    live_at: Live, model: str, shape: Callable[[Live, str], Awaitable[None]]
) -> None:
    await shape(live_at, model)  # what the first one makes stays
    await asyncio.sleep(0.05)
    circles = CIRCLES | (RUN if model.startswith("cursor:") else set())
    assert left_over(await rounds(live_at, model, shape)).keys() <= circles


async def rounds(live: Live, model: str, shape: Callable[[Live, str], Awaitable[None]]) -> list[Any]:
    """What only the collector finds behind some requests."""
    gc.collect()
    gc.freeze()  # the second collection looks at what has come since, and not at all tests and their reports
    gc.disable()
    try:
        for _ in range(ROUNDS):
            await shape(live, model)
        await asyncio.sleep(0.05)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found, gc.garbage[:] = gc.garbage[:], []
        return found
    finally:
        gc.set_debug(0)
        gc.enable()


def left_over(found: list[Any]) -> dict[str, int]:
    """Instances of our classes, as many as there are for each request and more."""
    ours = Counter(
        type(one).__name__
        for one in found
        if type(one).__module__.startswith("proxy.") and not type(one).__module__.startswith("proxy.sandbox")
    )
    return {name: count for name, count in ours.items() if count >= ROUNDS}
