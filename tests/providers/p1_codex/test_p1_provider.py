"""P1 as a provider: the standalone search, counting, names and forced settings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from checks import check_message_stream
from harness import Live, ask, configured, texts, until
from p1_events import CREATED, completed, delta
from samples import rows

from proxy.server.request.state import STATE

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
FORCED = {"tools": [SEARCH], "tool_choice": {"type": "tool", "name": "web_search"}}
PROMPT = "Perform a web search for the query: rust async book"


def answer_searches(live: Live, value: Any) -> None:
    """From now on searches get this JSON value instead of the sandbox's."""

    async def asked(outgoing: Any) -> Any:
        return value

    live.app[STATE].providers["p1"]._transport.json = asked  # type: ignore[attr-defined]


async def test_a_forced_search_asks_the_search_service(live: Live) -> None:
    answer = await live.stream(ask(PROMPT, **FORCED), headers={"x-claude-code-session-id": "s1"})
    check_message_stream(answer.events)
    started = [event["content_block"] for event in answer.events if event["type"] == "content_block_start"]
    assert [block["type"] for block in started] == ["server_tool_use", "web_search_tool_result", "text"]
    assert started[1]["tool_use_id"] == started[0]["id"] and started[0]["id"].startswith("srvtoolu_")
    assert all(link["url"].startswith("https://") for link in started[1]["content"])
    assert answer.events[-2]["usage"]["server_tool_use"]["web_search_requests"] == 1
    (seen,) = live.sandbox.p1.searches
    assert seen.body["commands"] == {"search_query": [{"q": "rust async book"}]}
    assert seen.body["id"] == seen.headers["session-id"] == "s1"
    assert live.upstream == 0 and live.watcher.names[-1] == "Completed"


async def test_agents_of_a_session_search_under_ids_of_their_own(live: Live) -> None:
    ids = []
    for agent in ("", "a", "b", "a"):
        headers = {"x-claude-code-session-id": "s1"} | ({"x-claude-code-agent-id": agent} if agent else {})
        await live.post(ask(PROMPT, **FORCED), headers=headers)
        ids.append(live.sandbox.p1.searches[-1].body["id"])
    await live.post(ask(PROMPT, **FORCED))
    seen = live.sandbox.p1.searches[-1]
    assert ids[0] == "s1" and ids[1] == ids[3] and len({*ids, seen.body["id"]}) == 4
    assert seen.body["id"] == seen.headers["session-id"] and seen.body["id"].startswith("search-")


async def test_a_search_without_words_is_refused_before_anybody_is_asked(live: Live) -> None:
    answer = await live.stream(ask([{"role": "user", "content": []}], **FORCED))
    assert answer.status == 400 and answer.error["type"] == "invalid_request_error"
    assert not live.sandbox.p1.searches


async def test_a_search_renews_a_refused_token_once(live: Live) -> None:
    live.sandbox.p1.revoke_access()
    assert (await live.post(ask(PROMPT, **FORCED))).status == 200
    assert live.sandbox.p1.refreshes == 1 and len(live.sandbox.p1.searches) == 2


async def test_a_search_without_sign_in_names_the_cure(live: Live) -> None:
    (live.root / "p1" / "auth.json").unlink()
    answer = await live.stream(ask(PROMPT, **FORCED))
    assert answer.status == 401 and "auth login p1" in answer.error["message"]


@rows("value", [{}, {"output": 7}, {"output": None, "results": []}])
async def test_a_search_answer_without_output_is_a_bad_answer(live: Live, value: Any) -> None:
    answer_searches(live, value)
    answer = await live.stream(ask(PROMPT, **FORCED))
    assert answer.status == 502 and answer.error["type"] == "api_error"


@rows("results", [None, [], "x", [7, {}, {"url": ""}, {"url": 7}], [{"url": "https://e.example"}]])
async def test_results_of_a_search_may_be_missing_or_odd(live: Live, results: Any) -> None:
    answer_searches(live, {"output": "prose", "results": results})
    answer = await live.stream(ask(PROMPT, **FORCED))
    check_message_stream(answer.events)
    assert texts(answer.events) == "prose"


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def other_search_service(live: Live, handler: Handler) -> AsyncIterator[None]:
    """Puts a server of the test's in the place of the search service."""
    app = web.Application()
    app.router.add_post("/alpha/search", handler)
    async with TestServer(app, handler_cancellation=True) as server:
        live.config = configured(live.config, p1_base_url=str(server.make_url("/responses")))
        yield


async def test_a_search_is_repeated_when_that_may_help(live: Live) -> None:
    statuses = [500, 429, 200]

    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"output": "prose"}, status=statuses.pop(0), headers={"retry-after": "3"})

    async with other_search_service(live, handler):
        assert (await live.post(ask(PROMPT, **FORCED))).status == 200
    assert live.sleeps == [3.0, 3.0]
    assert [event.attempt for event in live.watcher.last if type(event).__name__ == "UpstreamStarted"] == [1, 2, 3]


@rows("body", [b"no json", b"[]", b"", b"\xff"])
async def test_a_search_answer_that_is_no_object_is_a_bad_answer(live: Live, body: bytes) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=body)

    async with other_search_service(live, handler):
        assert (await live.post(ask(PROMPT, **FORCED))).status == 502


async def test_a_client_that_leaves_ends_its_search(live: Live) -> None:
    here, gone = asyncio.Event(), asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        here.set()
        try:
            await asyncio.sleep(30)
        finally:
            gone.set()
        return web.Response()

    async with other_search_service(live, handler):
        task = asyncio.ensure_future(live.post(ask(PROMPT, **FORCED)))
        await here.wait()
        task.cancel()
        async with asyncio.timeout(10):
            await gone.wait()
        await until(lambda: live.watcher.names[-1] == "Abandoned")


async def test_a_hosted_search_is_part_of_the_answer(live: Live) -> None:
    answer = await live.stream(ask(PROMPT, tools=[SEARCH]))
    check_message_stream(answer.events)
    started = [event["content_block"]["type"] for event in answer.events if event["type"] == "content_block_start"]
    assert started == ["server_tool_use", "web_search_tool_result", "text"]
    assert live.upstream == 1 and not live.sandbox.p1.searches


# -- counting and names


async def test_a_count_is_the_estimate_of_the_stream(live: Live) -> None:
    body = ask("a" * 4096, system="Be brief.")
    counted = (await live.post(body, "/v1/messages/count_tokens")).json
    started = (await live.stream(body)).events[0]["message"]["usage"]
    assert list(counted) == ["input_tokens"] and counted["input_tokens"] == started["input_tokens"] > 512
    assert live.upstream == 1


async def test_a_stream_begins_with_the_estimate_and_ends_with_what_the_service_counted(live: Live) -> None:
    exact = {"input_tokens": 777, "input_tokens_details": {"cached_tokens": 700}, "output_tokens": 3}
    events = [CREATED, delta("hello"), completed(usage=exact)]
    live.sandbox.p1.script.extend([{"events": events, "then": "end"}])
    answer = (await live.stream(ask("a" * 4096))).events
    assert 512 < answer[0]["message"]["usage"]["input_tokens"] < 700
    usage = answer[-2]["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (77, 700, 3)


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_texts_that_look_like_control_tokens_and_endless_blanks_are_counted(live: Live) -> None:
    for text in ("<|endoftext|>", " " * 1_500_000, "\t" * 1_200_000, "😀" * 1000):
        data = json.dumps(ask(text)).encode()
        answer = await live.post(data, "/v1/messages/count_tokens")
        assert answer.status == 200 and answer.json["input_tokens"] > 5


@rows("word, asked_for", [(None, True), ("concise", True), ("off", False), ("none", False)])
async def test_a_summary_of_the_reasoning_can_be_suppressed(live: Live, word: str | None, asked_for: bool) -> None:
    live.config = configured(live.config, p1_reasoning_summary=word)
    answer = await live.stream(ask(output_config={"effort": "high"}))
    deltas = [event["delta"] for event in answer.events if event["type"] == "content_block_delta"]
    thoughts = "".join(delta["thinking"] for delta in deltas if delta["type"] == "thinking_delta")
    assert bool(thoughts) is asked_for and texts(answer.events)
    assert ("summary" in live.sandbox.p1.requests[-1].body["reasoning"]) is asked_for
