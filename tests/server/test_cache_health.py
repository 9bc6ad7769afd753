"""What becomes of the upstream's cache: scripted sessions, each with the reason that it must give."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from harness import Live, ask, tool, until
from oauth_accounts import Clock

from proxy.observe.lifecycle import CacheChecked, UsageUpdated
from proxy.sandbox import Sandbox
from proxy.server.request import cache_watch
from proxy.server.request.state import STATE

Body = dict[str, Any]
SESSION = {"x-claude-code-session-id": "session-1"}
AGENT = SESSION | {"x-claude-code-agent-id": "agent-1"}
BILLING = "x-anthropic-billing-header: cc_version=2.1.330.{}; cc_entrypoint=cli;"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def live_options(clock: Clock) -> dict[str, Any]:
    return {"clock": clock, "openai_routes": True, "openai_mode": "lenient"}


@pytest.fixture
async def sandbox(clock: Clock) -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=clock) as running:
        yield running


def prose(number: int, size: int = 3_000) -> str:
    return f"Paragraph {number} says this. " * (size // 28)


def text(words: str, *, marked: bool = False) -> Body:
    block = {"type": "text", "text": words}
    return {**block, "cache_control": {"type": "ephemeral"}} if marked else block


def session(turns: int, *, model: str = "gpt-5.5") -> Body:
    """What a coding agent has said and heard after so many turns. Marks and the line about billing move as they do."""
    messages: list[Body] = [{"role": "user", "content": [text("<reminder>" + prose(0)), text("Fix the tests.")]}]
    for turn in range(1, turns):
        call = {"type": "tool_use", "id": f"call_{turn}", "name": "Bash", "input": {"command": f"ls {turn}"}}
        result = {"type": "tool_result", "tool_use_id": f"call_{turn}", "content": prose(turn)}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    tools = [tool(name) | {"description": f"{name}: {prose(9, 1_000)}"} for name in ("Bash", "Read", "Edit")]
    system = [text(BILLING.format(turns)), text("You are an agent."), text(prose(7, 6_000), marked=True)]
    return {"model": model, "max_tokens": 100, "system": system, "tools": tools, "messages": messages}


async def send(live: Live, body: Body, headers: dict[str, str] = SESSION, path: str = "/v1/messages") -> list[Any]:
    """What was told of its cache."""
    answer = await live.post(body, path, headers)
    assert answer.status == 200, answer.raw
    return [event for event in list(live.watcher.told.values())[-1] if isinstance(event, CacheChecked)]


# -- what is done to a session of ten turns before the next one is sent


def nothing(_live: Live, _clock: Clock, _body: Body) -> None: ...


def new_system(_live: Live, _clock: Clock, body: Body) -> None:
    body["system"][2]["text"] = "Today. " + body["system"][2]["text"]


def no_system(_live: Live, _clock: Clock, body: Body) -> None:
    del body["system"]


def reordered(_live: Live, _clock: Clock, body: Body) -> None:
    body["tools"].reverse()


def changed(_live: Live, _clock: Clock, body: Body) -> None:
    body["tools"][0]["description"] += "!"


def more(_live: Live, _clock: Clock, body: Body) -> None:
    body["tools"].insert(0, tool("mcp__x"))


def fewer(_live: Live, _clock: Clock, body: Body) -> None:
    del body["tools"][0]


def edited(_live: Live, _clock: Clock, body: Body) -> None:
    body["messages"][2]["content"][0]["content"] = "[cleared]"


def removed(_live: Live, _clock: Clock, body: Body) -> None:
    del body["messages"][1:3]


def put_in(_live: Live, _clock: Clock, body: Body) -> None:
    body["messages"].insert(0, {"role": "user", "content": [text("By the way.")]})


def back(_live: Live, _clock: Clock, body: Body) -> None:
    body["messages"][9:] = [{"role": "assistant", "content": prose(90, 30_000)}, {"role": "user", "content": "Go on."}]


def account(live: Live, _clock: Clock, _body: Body) -> None:
    live.sandbox.p1.options.account_id = live.sandbox.p1.tokens.account_id = "acct-other"
    live.sandbox.write_credentials(live.root)


def late(_live: Live, clock: Clock, _body: Body) -> None:
    clock.now += 25 * 60


def model(_live: Live, _clock: Clock, body: Body) -> None:
    body["model"] = "gpt-5.4"


def provider(_live: Live, _clock: Clock, body: Body) -> None:
    body["model"] = "kimi-for-coding"


def forgotten(live: Live, _clock: Clock, _body: Body) -> None:
    live.sandbox.p1.prompts.__init__(live.sandbox.p1.clock)  # type: ignore[misc]


def both(live: Live, clock: Clock, body: Body) -> None:
    forgotten(live, clock, body)
    body["messages"][12]["content"][0]["content"] = "[cleared]"


REASONS: list[tuple[Callable[[Live, Clock, Body], None], str]] = [
    (nothing, ""),
    (new_system, "the system text changed (block 2)"),
    (no_system, "the system text was removed"),
    (reordered, "the tools were reordered"),
    (changed, "the tool `Bash` changed"),
    (more, "a tool was added: `mcp__x`"),
    (fewer, "a tool was removed: `Bash`"),
    (edited, "message 3 of 19 was edited"),
    (removed, "message 2 of 19 was removed"),
    (put_in, "something was put in before message 1 of 19"),
    (back, "the conversation went back to message 10 of 19"),
    (account, "another account or key of p1"),
    (late, "25 min since the last request, longer than p1 keeps prompts (as far as known)"),
    (model, "another model: gpt-5.5 before"),
    (provider, "another provider: p1 before"),
    (forgotten, "the upstream no longer had it"),
    (both, "message 13 of 19 was edited; the upstream no longer had it"),
]


@pytest.mark.parametrize(("change", "reason"), REASONS, ids=[change.__name__ for change, _ in REASONS])
async def test_each_reason_is_told(live: Live, clock: Clock, change: Any, reason: str) -> None:
    [first] = await send(live, session(9))
    assert (first.expected, first.cached, first.reason) == (None, 0.0, "")
    [second] = await send(live, session(10))
    assert second.reason == "" and second.expected > 0.85 and second.cached > 0.8
    body = session(11)
    change(live, clock, body)
    [third] = await send(live, body)
    assert third.reason == reason
    assert (third.cached > 0.8) is (reason == "")
    [fourth] = await send(live, body)  # nothing new happened
    assert fourth.reason == "" and fourth.expected == 1.0 and fourth.cached > 0.9
    lost = [record["reason"] for record in live.notes.all("cache_lost")]
    assert lost == ([reason] if reason else [])
    notices = live.app[STATE].monitor.snapshot().notices
    assert [notice.message.partition("cache: ")[2] for notice in notices] == lost
    assert {notice.session for notice in notices} <= {"session-1"}
    logged = live.notes.all("request_completed")[2]
    assert (logged["cachedShare"], logged["expectedShare"]) == (third.cached, third.expected)


SUMMARY = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of it."


@pytest.mark.parametrize("asked", [True, False], ids=["asked for", "by its shape"])
async def test_a_compaction_is_no_riddle(live: Live, asked: bool) -> None:
    await send(live, session(10))
    if asked:
        body = session(10)
        body["messages"].append({"role": "user", "content": SUMMARY})
        [told] = await send(live, body)
        assert told.reason == "" and told.cached > 0.9
    body = session(1)
    body["messages"] = [{"role": "user", "content": "This session goes on from another. " + prose(80, 20_000)}]
    [told] = await send(live, body)
    assert told.reason == f"the conversation was compacted{'' if asked else ', or was begun anew'}"
    assert 0.2 < told.expected < 0.5 and 0.2 < told.cached < 0.5


async def test_side_requests_do_not_disturb_the_conversation(live: Live) -> None:
    """Titles, pages that are read for a search, a check of the allowance: all without an agent, on one session."""
    await send(live, session(9))
    for number in range(6):
        page = ask("Page: " + prose(50 + number, 20_000), system="Read a page.", model="gpt-5.4-mini")
        [told] = await send(live, page)
        assert (told.expected, told.reason) == (None, "")
        [told] = await send(live, ask("quota", max_tokens=1))
        assert (told.expected, told.reason) == (None, "")
    [told] = await send(live, session(10))
    assert told.reason == "" and told.expected > 0.85 < told.cached + 0.05


async def test_agents_are_conversations_of_their_own(live: Live) -> None:
    bodies = [session(9), session(9)]
    bodies[1]["tools"].reverse()
    for number in range(2):
        for body, headers in zip(bodies, (SESSION, AGENT), strict=True):
            [told] = await send(live, body, headers)
            assert told.reason == "" and (told.expected is None) is (number == 0)


async def test_two_agents_at_one_time(live: Live) -> None:
    live.sandbox.p1.options.word_delay_s = 0.001
    for _ in range(2):
        answers = await asyncio.gather(
            *(
                live.post(
                    {**session(8), "stream": True}, headers=SESSION | {"x-claude-code-agent-id": f"agent-{number}"}
                )
                for number in range(4)
            )
        )
        assert {answer.status for answer in answers} == {200}
    told = [event for events in live.watcher.told.values() for event in events if isinstance(event, CacheChecked)]
    assert [event.expected for event in told] == [None] * 4 + [1.0] * 4


async def test_a_reason_that_stays_is_news_once(live: Live) -> None:
    """A system prompt that tells the time breaks the cache with each request."""
    for number in range(4):
        body = session(9)
        body["system"][1]["text"] = f"It is {number} o'clock."
        [told] = await send(live, body)
        assert told.reason == ("the system text changed (block 1)" if number else "")
    assert len(live.notes.all("cache_lost")) == 1


async def test_what_failed_before_an_answer_is_not_compared_with(live: Live) -> None:
    await send(live, session(9))
    body = session(9)
    body["tools"].reverse()
    live.sandbox.p1.script.extend([{"fault": "usage_limit"}])
    assert (await live.post(body, headers=SESSION)).status == 429
    [told] = await send(live, session(10))
    assert told.reason == "" and told.expected > 0.85


async def test_an_answer_that_broke_off_had_been_read(live: Live) -> None:
    await send(live, session(9))
    body = session(9)
    body["tools"].reverse()
    live.sandbox.p1.script.extend([{"fault": "cut_text"}] * 4)
    assert (await live.post({**body, "stream": True}, headers=SESSION)).events[-1]["type"] == "error"
    [told] = await send(live, body)
    assert told.expected == 1.0 and told.reason == ""


async def test_a_service_that_tells_nothing_of_its_cache_has_not_lost_it(live: Live) -> None:
    for _ in range(2):
        assert await send(live, session(9, model="composer-2.5")) == []
        used = [event for event in list(live.watcher.told.values())[-1] if isinstance(event, UsageUpdated)]
        assert used and {event.cached_tokens for event in used} == {None}


async def test_an_answer_without_counts_has_not_lost_its_cache(live: Live) -> None:
    model = "kimi-for-coding"
    await send(live, session(9, model=model))
    live.sandbox.p2.script.extend([{"fault": "usage", "where": "missing"}])
    assert await send(live, session(10, model=model)) == []
    [told] = await send(live, session(11, model=model))
    assert told.cached > 0.8 and told.expected > 0.8


QUIET: list[tuple[str, Body, dict[str, str]]] = [
    ("/v1/messages", session(9), {}),
    ("/v1/messages", session(9), SESSION | {"x-claude-code-agent-id": "two words"}),
]


@pytest.mark.parametrize(("path", "body", "headers"), QUIET, ids=["no session", "an odd agent"])
async def test_whose_a_request_is_must_be_known(live: Live, path: str, body: Body, headers: dict[str, str]) -> None:
    for _ in range(2):
        assert await send(live, body, headers, path) == []
    assert len(live.app[STATE].cache.memory) == 0


async def test_counts_are_no_requests(live: Live) -> None:
    assert (await live.post(session(9), "/v1/messages/count_tokens", SESSION)).status == 200
    assert len(live.app[STATE].cache.memory) == 0


def responses(turns: int, *, tools: list[str], model: str) -> Body:
    functions = [
        {
            "type": "function",
            "name": name,
            "description": prose(9, 1_000),
            "parameters": {"type": "object", "properties": {}},
        }
        for name in tools
    ]
    items: list[Body] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": prose(1)}]}]
    for turn in range(turns):
        call = {"type": "function_call", "call_id": f"c{turn}", "name": tools[0], "arguments": "{}"}
        items += [call, {"type": "function_call_output", "call_id": f"c{turn}", "output": prose(turn)}]
    return {"model": model, "instructions": prose(5), "input": items, "tools": functions}


def chat(turns: int, *, tools: list[str], model: str) -> Body:
    functions = [{"type": "function", "function": {"name": name, "description": prose(9, 1_000)}} for name in tools]
    messages: list[Body] = [{"role": "system", "content": prose(5)}, {"role": "user", "content": prose(1)}]
    for turn in range(turns):
        said = [{"role": "assistant", "content": f"{turn}."}, {"role": "user", "content": prose(turn)}]
        messages += said
    return {"model": model, "messages": messages, "tools": functions}


@pytest.mark.parametrize("named", ["session", "key"])
@pytest.mark.parametrize("make", [responses, chat])
@pytest.mark.parametrize("model", ["gpt-5.5", "kimi-for-coding"])
async def test_the_routes_of_the_other_api(live: Live, make: Any, model: str, named: str) -> None:
    path = "/v1/responses" if make is responses else "/v1/chat/completions"
    headers = {"session_id": "s-1"} if named == "session" else {}
    more = {"prompt_cache_key": "mine"}
    found = []
    for turns, tools in ((8, ["Bash", "Read"]), (9, ["Bash", "Read"]), (10, ["Read", "Bash"])):
        [told] = await send(live, make(turns, tools=tools, model=model) | more, headers, path)
        found.append((told.expected, told.reason))
    assert found[0] == (None, "") and found[1][0] > 0.8
    assert [reason for _, reason in found[1:]] == ["", "the tools were reordered"]


async def test_a_large_body_is_looked_at_beside_the_loop(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_watch, "LOOP_BYTES", 1_000)
    await send(live, session(9))
    await until(lambda: live.app[STATE].cache.memory.blocks)
    monkeypatch.setattr(cache_watch, "LOOK_S", 0.0)
    live.sandbox.p1.options.word_delay_s = 0.005
    body = copy.deepcopy(session(10))
    body["tools"].reverse()
    [told] = await send(live, body)
    assert told.reason == "the tools were reordered"
