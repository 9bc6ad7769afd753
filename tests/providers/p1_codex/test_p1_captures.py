"""What captures are told by P1 beyond an answer over HTTP: sockets, searches, compaction, the native route."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Live, ask, configured, until, watch_often
from stations import Told, ToldRequest
from talks import Talk

from proxy.core.compaction import TASK_MARKER, TEXT_ONLY_MARKER

SESSION = {"x-claude-code-session-id": "s1"}
FORCED: dict[str, Any] = {
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "tool_choice": {"type": "tool", "name": "web_search"},
}
SEARCH = ask("Perform a web search for the query: rust async book", **FORCED)


@pytest.fixture
def live_options(told: Told) -> dict[str, Any]:
    return {"captures": told, "openai_routes": True, "tuning": (watch_often(),)}


async def over(told: Told, requests: int = 1) -> ToldRequest:
    """The newest of so many requests, when it is over."""
    await until(lambda: len(told.requests) == requests and told.last.ends)
    return told.last


async def test_a_turn_that_continues_says_so(live: Live, told: Told) -> None:
    live.config = configured(live.config, p1_transport="auto", p1_previous_response_id=True)
    talk = Talk(live)
    for number, (pooled, continuation) in enumerate(((False, "missing_state"), (True, "continued")), 1):
        await talk.turn(f"turn {number}")
        request = await over(told, number)
        (attempt,) = request.attempts
        assert request.way == "websocket 101 events streamed completed:200"
        assert attempt.details["pooled"] is pooled and attempt.details["continuation"] == continuation
        assert attempt.details["socket"] == 1 and attempt.answers[0][1]["Upgrade"] == "websocket"
        assert ("previous_response_id" in json.loads(attempt.body)) is pooled  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "steps", "way"),
    [
        (
            "auto",
            [{"place": "upgrade", "status": 426}],
            "websocket 426 refused failed http 200 data replied completed:200",
        ),
    ],
)
async def test_an_upgrade_that_fails_is_told(
    live: Live, told: Told, mode: str, steps: list[dict[str, Any]], way: str
) -> None:
    live.config = configured(live.config, p1_transport=mode, p1_previous_response_id=True)
    live.sandbox.p1.options.accept_sockets = False
    await live.post(ask(), headers=SESSION)
    request = await over(told)
    assert request.way == way
    assert request.attempts[0].body == b"" and request.attempts[0].url.startswith("ws://")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_search_is_told(live: Live, told: Told, stream: bool) -> None:
    await live.post({**SEARCH, "stream": stream}, headers=SESSION)
    request = await over(told)
    assert request.way == f"http 200 data {'streamed' if stream else 'replied'} completed:200"
    (attempt,) = request.attempts
    assert attempt.url.endswith("/alpha/search") and "rust async book" in str(attempt.body)


async def test_a_compaction_is_an_attempt_before_its_summary(live: Live, told: Told) -> None:
    live.config = configured(live.config, p1_server_compaction=True)
    words = f"{TEXT_ONLY_MARKER}\n\n{TASK_MARKER} the conversation so far."
    await live.post(ask(words, model="gpt-5.6-sol"), headers=SESSION)
    request = await over(told)
    assert request.way == "http 200 data http 200 data replied completed:200"
    assert [b"compaction_trigger" in attempt.body for attempt in request.attempts] == [True, False]  # type: ignore[operator]
