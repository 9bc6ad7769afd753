"""When another account goes on with a request: at each moment of an answer, on each API, streamed and whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from harness import Fake, Live, ask, kinds, played, store_account, texts, until, use, watch_often, whole_message
from openai_live import CHAT, RESPONSES, body_for

from proxy.errors import UpstreamError
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

ACCOUNT = "x-model-proxy-account"
START, *TEXT, _, _ = whole_message("gpt-5.5", "fine")
THOUGHT = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_stop", "index": 0},
]
PING = {"type": "ping"}
SPENT = UpstreamError("no more", kind="usage_limit", provider="p1", retry_after=600)


async def two_fakes(live: Live, *steps: Any, then: Sequence[Any] = ()) -> tuple[Fake, Fake]:
    """Two accounts of p1: what `default` does, and one that answers, or what it does `then`."""
    store_account(live.root, "p1")
    first, second = Fake("p1", played(*steps)), Fake("p1", played(*(then or [whole_message("gpt-5.5", "second")])))
    accounts = live.app[STATE].accounts
    accounts.providers.made["p1"], accounts.named["p1/work"] = first, second
    return first, second


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("before", "moves"),
    [
        ([], True),
        ([[START]], True),
        ([[START], [PING]], True),
        ([[START, *THOUGHT]], False),
        ([[START, TEXT[0]]], False),
        ([[START, *TEXT]], False),
    ],
    ids=["at once", "begun", "pinged", "thought", "block", "text"],
)
async def test_only_before_anything_was_seen(tmp_path: Path, before: list[Any], moves: bool, stream: bool) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next") as live:
        first, second = await two_fakes(live, *before, SPENT)
        answer = await live.post(ask(stream=stream))
        assert (len(first.calls), len(second.calls)) == (1, int(moves))
        assert first.closed == 1
        assert (b"second" in answer.raw) is moves and answer.raw.count(b'"message_start"') <= 2  # event and its type
        assert answer.headers[ACCOUNT] == ("work" if moves else "default")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", ask()),
        ("/v1/chat/completions", {"model": "gpt-5.5", "messages": [{"role": "user", "content": "hello"}]}),
        ("/v1/responses", {"model": "gpt-5.5", "input": "hello"}),
    ],
)
async def test_on_every_api(tmp_path: Path, path: str, body: dict[str, Any], stream: bool) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next", openai_routes=True) as live:
        first, second = await two_fakes(live, [START], SPENT)
        answer = await live.post({**body, "stream": stream}, path)
        assert answer.status == 200 and b"second" in answer.raw, answer.raw
        assert (len(first.calls), len(second.calls)) == (1, 1)


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "upstream", "transport", "permission", "context"])
async def test_what_says_nothing_of_an_allowance_stays(tmp_path: Path, kind: str) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next") as live:
        _, second = await two_fakes(live, UpstreamError("no", kind=kind, provider="p1"))
        assert (await live.post(ask())).status >= 400 and second.calls == []


async def test_a_client_that_leaves_is_followed_by_nobody(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next") as live:
        never = asyncio.Event()
        first, second = await two_fakes(live, never, SPENT)
        request = asyncio.create_task(live.post(ask()))
        await until(lambda: first.calls)
        request.cancel()
        await until(lambda: first.closed)
        assert second.calls == []


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
REDACTED = {"type": "redacted_thinking", "data": "x"}


@pytest.mark.parametrize("path", ["/v1/messages", CHAT, RESPONSES])
@pytest.mark.parametrize(
    "steps",
    [
        [[TEXT[0]], [TEXT[1]]],
        [[TEXT[0]]],
        [[THOUGHT[0]], [THOUGHT[1]]],
        [[{"type": "content_block_start", "index": 0, "content_block": REDACTED}, THOUGHT[2]]],
        [[{"type": "content_block_start", "index": 0, "content_block": SEARCH}]],
    ],
    ids=["text", "start", "thought", "redacted", "search"],
)
async def test_nobody_goes_on_once_the_head_is_out_and_a_block_began(tmp_path: Path, steps: Any, path: str) -> None:
    """Also where the API has no event for what began: its piece of text comes later, and is of the first account."""
    early: dict[str, Any] = {"stream_grace_ms": 20, "openai_routes": True, "tuning": (watch_often(),)}
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next", **early) as live:
        first, second = await two_fakes(live, [START], 0.3, *steps, SPENT)
        body = ask(stream=True) if path == "/v1/messages" else body_for(path, "hello", model="gpt-5.5", stream=True)
        answer = await live.post(body, path)
        assert (len(first.calls), len(second.calls)) == (1, 0) and b"no more" in answer.raw


@pytest.mark.parametrize("kind", ["usage_limit", "sign_in"])
async def test_what_ends_it_is_said_of_the_account_that_failed_last(tmp_path: Path, kind: str) -> None:
    declared = {"fallback": (("gpt-5.5", ("kimi-k3",)),), "fallback_on": ("usage_limit", "sign_in", "overloaded")}
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next", **declared) as live:
        error = UpstreamError("second says no", kind=kind, provider="p1", retry_after=900)
        await two_fakes(live, SPENT, then=[error])
        use(live, Fake("p2", played(UpstreamError("kimi no", kind="overloaded", provider="p2"))))
        answer = await live.post(ask())
        assert "account work" in answer.error["message"] and answer.headers[ACCOUNT] == "work"
        assert "p1" not in live.app[STATE].accounts._refused


async def test_what_is_refused_at_once_binds_no_session_to_an_account(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next") as live:
        await two_fakes(live)
        answer = await live.post(ask([]), headers={"x-claude-code-session-id": "s1"})
        assert answer.status == 400 and ACCOUNT not in answer.headers
        assert not live.app[STATE].accounts._affinity._began


async def test_the_input_of_a_whole_answer_is_estimated_once(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, on_spent="next") as live:
        await two_fakes(live, [START], SPENT)
        assert (await live.post(ask())).status == 200 and live.watcher.names.count("InputEstimated") == 1


@pytest.mark.parametrize("order", [[START, PING], [PING, START]], ids=["start first", "ping first"])
async def test_a_ping_beside_the_beginning_is_no_head(tmp_path: Path, order: list[Any]) -> None:
    declared: dict[str, Any] = {"fallback": (("gpt-5.5", ("kimi-k3",)),), "on_spent": "next"}
    async with Sandbox() as sandbox, Live(sandbox, tmp_path, **declared) as live:
        busy = UpstreamError("x", kind="overloaded", provider="p1")
        await two_fakes(live, order, SPENT, then=[order, busy])
        use(live, Fake("p2", played([*order, *whole_message("kimi-k3", "third")[1:]])))
        answer = await live.post(ask(stream=True))
        assert "x-model-proxy-fallback" in answer.headers and kinds(answer.events).count("message_start") == 1
        assert texts(answer.events) == "third"
