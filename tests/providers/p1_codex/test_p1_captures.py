"""Captures of P1 beyond an answer over HTTP: sockets, searches, compaction, the native route."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness import Live, ask, configured, watch_often
from stations import Recorded
from talks import Talk

from proxy.core.effort import TASK_MARKER, TEXT_ONLY_MARKER
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.sandbox import Sandbox

SESSION = {"x-claude-code-session-id": "s1"}
FORCED: dict[str, Any] = {
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "tool_choice": {"type": "tool", "name": "web_search"},
}
SEARCH = ask("Perform a web search for the query: rust async book", **FORCED)


@pytest.fixture
def live_options(recorded: Recorded) -> dict[str, Any]:
    return {"captures": recorded, "openai_routes": True, "tuning": (watch_often(),)}


async def test_a_turn_that_continues_says_so(live: Live, recorded: Recorded) -> None:
    live.config = configured(live.config, p1_transport="auto", p1_previous_response_id=True)
    talk = Talk(live)
    for number, (pooled, continuation) in enumerate(((False, "missing_state"), (True, "continued")), 1):
        await talk.turn(f"turn {number}")
        request = await recorded.over(number)
        (attempt,) = request.attempts
        assert request.way == "websocket 101 events streamed completed:200"
        assert attempt.details["pooled"] is pooled and attempt.details["continuation"] == continuation
        assert attempt.details["socket"] == 1 and attempt.answers[0][1]["Upgrade"] == "websocket"
        assert ("previous_response_id" in json.loads(attempt.body)) is pooled  # type: ignore[arg-type]


FELL_BACK = "http 200 data replied completed:200"

#: mode, step of the sandbox -> the recorded stations
SOCKETS: list[tuple[str, dict[str, Any], str]] = [
    ("auto", {"fault": "upgrade_required"}, f"websocket 426 refused failed {FELL_BACK}"),
    ("auto", {"fault": "upgrade_no_accept"}, f"websocket 101 failed {FELL_BACK}"),
    ("auto", {"fault": "upgrade_extension"}, f"websocket 101 failed {FELL_BACK}"),
    (
        "auto",
        {"fault": "upgrade_unauthorized"},
        "websocket 401 refused failed websocket 101 events replied completed:200",
    ),
    (
        "websocket",
        {"fault": "upgrade_forbidden"},
        "websocket 403 refused failed websocket 101 events replied completed:200",
    ),
    ("websocket", {"fault": "upgrade_required", "times": 9}, "websocket 426 refused failed replied failed:426"),
    ("websocket", {"fault": "cut_text"}, "websocket 101 events failed websocket 101 events replied completed:200"),
    ("websocket", {"fault": "binary_frame"}, "websocket 101 events failed replied failed:502"),
    ("websocket", {"fault": "forbidden"}, "websocket 101 events replied failed:403"),
]


@pytest.mark.parametrize(("mode", "step", "way"), SOCKETS, ids=[f"{mode}-{step['fault']}" for mode, step, _ in SOCKETS])
async def test_what_happens_to_a_socket_is_captured(
    live: Live, recorded: Recorded, mode: str, step: dict[str, Any], way: str
) -> None:
    live.config = configured(live.config, p1_transport=mode, p1_previous_response_id=True)
    live.sandbox.p1.script.extend([{"provider": "p1", **step}])
    await live.post(ask(), headers=SESSION)
    request = await recorded.over()
    assert request.way == way
    for attempt in request.attempts:
        if attempt.transport == "websocket":
            assert attempt.url.startswith("ws://") and bool(attempt.body) == ("continuation" in attempt.details)


@pytest.mark.parametrize("mode", ["http", "websocket"])
async def test_a_failing_proxy_on_the_way_is_captured(
    sandbox: Sandbox, tmp_path: Path, recorded: Recorded, mode: str
) -> None:
    proxies = OutboundProxies.from_environment({"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""})
    settings = {"p1_transport": mode, "p1_workspace_routing": False}
    async with Live(sandbox, tmp_path, captures=recorded, proxies=proxies, **settings) as live:
        await live.post(ask(), headers=SESSION)
    request = await recorded.over()
    assert request.way == f"{mode} failed replied failed:502"
    assert "proxy" in request.attempts[0].failures[0]


NATIVE: list[tuple[bool, dict[str, Any], str]] = [
    (True, {"fault": "rate_limit"}, "http 429 refused failed http 200 data streamed completed:200"),
    (True, {"status": 401}, "http 401 refused failed http 200 data streamed completed:200"),
    (True, {"fault": "forbidden"}, "http 403 refused failed replied failed:403"),
    (True, {"fault": "cut_text"}, "http 200 data streamed failed failed:200"),
    (True, {"fault": "redirect"}, "http 302 failed replied failed:502"),
    (False, {"fault": "cut_text"}, "http 200 data failed http 200 data replied completed:200"),
    (False, {"fault": "forbidden"}, "http 403 refused failed replied failed:403"),
]


@pytest.mark.parametrize(("stream", "step", "way"), NATIVE)
async def test_the_native_route_is_captured(
    live: Live, recorded: Recorded, stream: bool, step: dict[str, Any], way: str
) -> None:
    live.sandbox.p1.script.extend([{"provider": "p1", **step}])
    body = {"model": "gpt-5.5", "input": "hello", "stream": stream}
    with suppress(aiohttp.ClientPayloadError):
        await live.post(body, "/v1/responses")
    request = await recorded.over()
    assert request.way == way and request.begun.converted is None


@pytest.mark.parametrize("stream", [True, False])
async def test_a_search_is_captured(live: Live, recorded: Recorded, stream: bool) -> None:
    await live.post({**SEARCH, "stream": stream}, headers=SESSION)
    request = await recorded.over()
    assert request.way == f"http 200 data {'streamed' if stream else 'replied'} completed:200"
    (attempt,) = request.attempts
    assert attempt.url.endswith("/alpha/search") and "rust async book" in str(attempt.body)


async def test_a_compaction_is_an_attempt_before_its_summary(live: Live, recorded: Recorded) -> None:
    live.config = configured(live.config, p1_server_compaction=True)
    words = f"{TEXT_ONLY_MARKER}\n\n{TASK_MARKER} the conversation so far."
    await live.post(ask(words, model="gpt-5.6-sol"), headers=SESSION)
    request = await recorded.over()
    assert request.way == "http 200 data http 200 data replied completed:200"
    assert [b"compaction_trigger" in attempt.body for attempt in request.attempts] == [True, False]  # type: ignore[operator]
