"""A program that embeds the proxy may run uvloop. Nothing here depends on it, and all of it works there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import uvloop
from harness import Live, ask, kinds, texts, tool, until, watch_often

from proxy.sandbox import Sandbox

#: model -> who serves it
MODELS = {
    "gpt-5.5": "p1",
    "kimi-for-coding": "p2",
    "grok-4.6": "p3",
    "opencode-go/kimi-k2.6": "p4",
    "minimax-m3": "p4",
    "cursor:gpt-5.5": "p5",
}


async def turns(live: Live, model: str) -> None:
    """A stream, a call, the whole answer to a large body, and a client that leaves: its upstream ends too."""
    session = {"x-claude-code-session-id": f"session-{model}"}
    streamed = await live.stream(ask("stream 30 words", model=model), headers=session)
    assert len(texts(streamed.events).split()) == 30 and kinds(streamed.events)[-1] == "message_stop"
    called = await live.stream(ask("use Bash: ls", model=model, tools=[tool()]), headers=session)
    assert [event["content_block"]["type"] for event in called.events if "content_block" in event][-1] == "tool_use"
    large = await live.post(ask("many words " * 20_000, model=model), headers={})
    assert large.json["stop_reason"] == "end_turn"
    upstream = live.sandbox[MODELS[model]]
    waiting = upstream.active  # a run of p5 stays open for the result of its call
    upstream.options.word_delay_s = 0.02
    async with live.open({**ask("stream 4000 words", model=model), "stream": True}) as answer:
        await answer.content.readany()
        assert upstream.active == waiting + 1
    await until(lambda: upstream.active == waiting)
    upstream.options.word_delay_s = 0.0


async def serve(root: Path, transport: str) -> None:
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
    async with (
        Sandbox() as sandbox,
        Live(sandbox, root, p1_transport=transport, tuning=(watch_often(),)) as live,
    ):
        for model in MODELS:
            await turns(live, model)


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_every_provider_serves_on_uvloop(tmp_path: Path, transport: str) -> None:
    uvloop.run(serve(tmp_path, transport))
