"""Conversations of one session side by side, through the whole proxy, against the sandbox's own memory."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from harness import Live, until
from samples import Extent
from talks import Talk
from ws_upstream import leaving_nothing, provider_sockets

from proxy.sandbox import Sandbox
from proxy.sandbox.p1.socket.connection import Item, Memory

TURNS = 200 if Extent.everything else 80


@pytest.fixture
async def live(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Live]:
    settings: dict[str, Any] = {"p1_transport": "websocket", "p1_previous_response_id": True}
    async with leaving_nothing(sandbox.p1.sockets), Live(sandbox, tmp_path, **settings) as running:
        yield running


class Speaker:
    """A talk whose every word is marked, with `<name-number>`: prompts, prompts for a tool, and results."""

    def __init__(self, live: Live, name: str, agent: str | None, **members: Any) -> None:
        self.name = name
        self.talk = Talk(live, "s", agent, **members)
        self.turns = 0

    async def turn(self) -> None:
        self.turns += 1
        mark = f"<{self.name}-{self.turns}>"
        pending = bool(self.talk.messages) and self.talk.messages[-1]["content"][-1]["type"] == "tool_use"
        wants_tool = not pending and self.turns % 2 == 1
        message = await self.talk.turn(f"use Bash: echo {mark}" if wants_tool else f"say {mark}")
        kinds = [block["type"] for block in message["content"]]
        assert ("thinking" in kinds) == ("output_config" in self.talk.members)
        assert message["stop_reason"] == ("tool_use" if wants_tool else "end_turn")
        assert marks(message["content"][-1:]) == {(self.name, self.turns)}


def marks(value: Any) -> set[tuple[str, int]]:
    """The marks in a value, at any depth."""
    return {(name, int(number)) for name, number in re.findall(r"<(\w+)-(\d+)>", json.dumps(value))}


def owner_of(items: Iterable[Item]) -> str:
    (name,) = {name for name, _ in marks(list(items))}
    return name


def remembered(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, list[str]], dict[str, list[Item]]]:
    """Conversation -> the responses that the upstream completed for it, in order; and all that it knows to be said. A
    response whose conversation holds words of two of them fails."""
    responses: dict[str, list[str]] = defaultdict(list)
    known: dict[str, list[Item]] = {}
    remember = Memory.remember

    def noted(self: Memory, response_id: str, items: Iterable[Item]) -> None:
        items = list(items)
        responses[owner_of(items)].append(response_id)
        known[owner_of(items)] = items
        remember(self, response_id, items)

    monkeypatch.setattr(Memory, "remember", noted)
    return responses, known


def speakers_of(live: Live) -> list[Speaker]:
    high = {"output_config": {"effort": "high"}}
    return [
        Speaker(live, "main", None, model="gpt-5.6-sol", **high),
        Speaker(live, "reader", "a1", model="gpt-5.6-sol"),
        Speaker(live, "writer", "a2", model="gpt-5.5", **high),
    ]


async def test_two_agents_and_the_main_conversation_never_take_anothers_response(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In random order, two at a time, with tool calls and thinking among them."""
    (responses, known), chance, speakers = remembered(monkeypatch), random.Random(5), speakers_of(live)
    live.sandbox.p1.requests = deque()  # all are kept
    for _ in range(TURNS // 2):
        await asyncio.gather(*(speaker.turn() for speaker in chance.sample(speakers, k=2)))
    frames: dict[str, list[Any]] = defaultdict(list)
    for seen in live.sandbox.p1.requests:
        frames[owner_of(seen.body["input"])].append(seen)
    assert sum(map(len, frames.values())) == live.upstream == TURNS and set(frames) == {"main", "reader", "writer"}
    for name, own in frames.items():
        assert [seen.body.get("previous_response_id") for seen in own] == [None, *responses[name][:-1]]
        assert len({seen.socket for seen in own}) == 1 and max(len(seen.body["input"]) for seen in own[1:]) == 1
    for speaker in speakers:  # the upstream knows every turn of its own conversation
        turns = {(speaker.name, number + 1) for number in range(speaker.turns)}
        assert marks(known[speaker.name]) == turns and len(responses[speaker.name]) == speaker.turns
    p1 = live.sandbox.p1
    assert (p1.sockets.total, p1.sockets.open, p1.sockets.most_open) == (3, 3, 3) and not live.sleeps
    assert len(provider_sockets(live).continuations) == len(provider_sockets(live).pool) == 3


async def test_an_agent_whose_client_leaves_takes_only_its_own_along(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    (responses, _), speakers = remembered(monkeypatch), speakers_of(live)
    main, reader, writer = speakers
    for speaker in speakers * 2:
        await speaker.turn()
    p1, known = live.sandbox.p1, provider_sockets(live)
    p1.script.extend([{"match": {"contains": "<reader-3>"}, "fault": "silence_mid_text", "seconds": 60}])
    leaving = asyncio.ensure_future(reader.turn())
    await until(lambda: p1.active)
    await asyncio.gather(main.turn(), writer.turn())
    leaving.cancel()
    await until(lambda: p1.sockets.open == 2)
    await until(lambda: len(known.continuations) == len(known.pool) == 2)
    reader.talk.messages.pop()
    for speaker in (main, reader, writer):
        await speaker.turn()
    last = {owner_of(seen.body["input"]): seen for seen in list(p1.requests)[-3:]}
    previous = {name: seen.body.get("previous_response_id") for name, seen in last.items()}
    assert previous == {"main": responses["main"][-2], "reader": None, "writer": responses["writer"][-2]}
    assert {name: seen.socket for name, seen in last.items()} == {"main": 1, "reader": 4, "writer": 3}
