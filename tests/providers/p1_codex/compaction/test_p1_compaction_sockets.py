"""P1's own compaction and continuation together, over sockets: each goes on from what was really sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from harness import Live, until
from talks import Talk
from ws_upstream import provider_sockets

from proxy.core.effort import TASK_MARKER, TEXT_ONLY_MARKER
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.sandbox import Sandbox

INSTRUCTION = f"{TEXT_ONLY_MARKER}\n\n{TASK_MARKER} the conversation so far."

#: Of a request: how it came (its socket, None for HTTP), whether it goes on from a response, whether the encrypted
#: item is in it, and how many items it has.
Sent = tuple[int | None, bool, bool, int]


@pytest.fixture(params=["websocket", "auto"])
async def live(request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Live]:
    settings = {"p1_previous_response_id": True, "p1_server_compaction": True, "p1_transport": request.param}
    async with Live(sandbox, tmp_path, **settings) as running:
        yield running


def sent(live: Live) -> list[Sent]:
    compacted = [any(item["type"] == "compaction" for item in seen.body["input"]) for seen in live.sandbox.p1.requests]
    return [
        (seen.socket, "previous_response_id" in seen.body, replays, len(seen.body["input"]))
        for seen, replays in zip(live.sandbox.p1.requests, compacted, strict=True)
    ]


@pytest.fixture
def talk(live: Live) -> Talk:
    return Talk(live)


async def compact(talk: Talk) -> None:
    """As the client does it: asks for a summary, and begins anew with that."""
    answer = (await talk.turn(INSTRUCTION))["content"][-1]["text"]
    summary = answer.partition("<summary>")[2].partition("</summary>")[0].strip()
    assert summary
    talk.messages.clear()
    await talk.turn(f"Continued: {summary}")


async def test_turns_after_a_compaction_replay_the_item_once_and_go_on_from_there(live: Live, talk: Talk) -> None:
    await talk.turns("one", "two")
    await compact(talk)
    await talk.turns("three", "use Bash: ls", "a file", "four")
    alone, last = (None, 3) if live.config.section(CodexSettings).transport == "auto" else (3, 4)
    assert sent(live) == [
        (1, False, False, 3),
        (1, True, False, 1),
        (None, False, False, 6),  # what the item is made of, without the instruction
        (2, False, False, 7),  # the summary is asked for with less effort, so it goes on from nothing
        (alone, False, False, 3),  # and alone it says nothing yet
        (last, False, True, 7),
        *[(last, True, False, 1)] * 3,
    ]
    assert "three" in str(talk.messages[3]) and live.notes.all("server_compaction_completed")
    assert not live.notes.all("server_compaction_failed") and not live.notes.all("server_compaction_dropped")
    assert live.sandbox.p1.sockets.open == len(provider_sockets(live).pool) == 1


@pytest.mark.parametrize(
    ("fault", "item"), [("previous_response_not_found", True), ("cut_at_once", True), ("unsealable", False)]
)
async def test_a_continuation_of_a_replay_that_fails_is_sent_whole(
    live: Live, talk: Talk, fault: str, item: bool
) -> None:
    """With the item in its place; without it when it is the item that was refused."""
    await talk.turn("one")
    await compact(talk)
    await talk.turns("two", "three")
    live.sandbox.p1.script.extend([{"fault": fault, "match": {"wire": "websocket"}}])
    assert (await talk.turn("four"))["stop_reason"] == "end_turn"
    (_, continued, _, _), (socket, whole, replays, _) = sent(live)[-2:]
    assert (continued, whole, replays) == (True, False, item)
    await talk.turn("five")
    await until(lambda: live.sandbox.p1.sockets.open == 1)
    assert sent(live)[-1] == (socket, True, False, 1) if item else sent(live)[-1][1:3] == (False, False)
    await talk.turn("six")
    assert sent(live)[-1][1:] == (True, False, 1)


async def test_an_agent_goes_on_while_the_main_conversation_is_compacted(live: Live) -> None:
    main, agent = Talk(live), Talk(live, agent="a")
    for talk in (main, agent):
        await talk.turn("one")
    await compact(main)
    await agent.turn("two")
    assert sent(live)[-1] == (2, True, False, 1)
    await main.turn("two")
    assert sent(live)[-1][1:3] == (False, True)
    await agent.turn("three")
    assert sent(live)[-1] == (2, True, False, 1)


async def test_what_was_compacted_never_mixes_with_another_model(live: Live, talk: Talk) -> None:
    """The state belongs to the model; a turn with another is sent whole and plain, and so is what follows."""
    await talk.turn("one")
    await compact(talk)
    await talk.turn("two")
    members: dict[str, Any] = {**talk.members}
    talk.members["model"] = "gpt-5.5"
    await talk.turn("three")
    assert sent(live)[-1][1:3] == (False, False)
    talk.members = members
    await talk.turn("four")
    assert sent(live)[-1][1:3] == (False, False)
