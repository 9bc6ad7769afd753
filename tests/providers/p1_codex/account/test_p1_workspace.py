"""Where the account's workspace is served: what is learnt, what is believed, and that requests go there."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from harness import Live, ask, configured, with_live
from samples import rows

from proxy.providers.p1_codex.account.workspace import OVERRIDE_HEADER, Workspace, workspace_of
from proxy.settings import UnfitValue

BASE = "https://host/backend-api/codex/responses"
SESSION = {"x-claude-code-session-id": "s1"}


def answer(**members: Any) -> dict[str, Any]:
    return {"accounts": [{"id": "other"}, "x", {"id": "acct", **members}]}


@rows(
    "members, expected",
    [
        ({}, Workspace()),
        ({"workspace_backend_origin": "NO_CONSTRAINT", "account_routing_override": "NO_CONSTRAINT"}, Workspace()),
        ({"workspace_backend_origin": None, "account_routing_override": 7}, Workspace()),
        ({"workspace_backend_origin": "https://eu.host:8443"}, Workspace("https://eu.host:8443")),
        ({"workspace_backend_origin": "https://eu.host/"}, Workspace("https://eu.host")),
        ({"account_routing_override": "us_cr"}, Workspace(override="us_cr")),
    ],
)
def test_what_is_believed(members: dict[str, Any], expected: Workspace) -> None:
    assert workspace_of(answer(**members), "acct", BASE) == expected


ORIGINS = ("http://eu.host", "https://a:b@eu.host", "https://eu.host/path", "http://127.0.0.1:1", "eu.host", "ftp://h")


@rows(
    "strange",
    [
        *(answer(workspace_backend_origin=origin) for origin in ORIGINS),
        answer(account_routing_override="a\r\nb"),
        *({}, {"accounts": None}, {"accounts": [{"id": "other"}]}),
    ],
)
def test_what_is_not_believed(strange: dict[str, Any]) -> None:
    with pytest.raises(UnfitValue):
        workspace_of(strange, "acct", BASE)


def elsewhere(live: Live) -> None:
    """The workspace is bound: the same simulator under another name."""
    options = live.sandbox.p1.options
    options.workspace_origin, options.routing_override = f"http://localhost:{live.sandbox.port}", "us"


@pytest.mark.parametrize("transport", ["http", "websocket"])
async def test_requests_follow_it(transport: str, live: Live) -> None:
    elsewhere(live)
    live.config = configured(live.config, p1_transport=transport)
    for _ in range(2):
        assert (await live.post(ask())).status == 200
        seen = live.sandbox.p1.requests[-1]
        assert seen.headers["host"] == f"localhost:{live.sandbox.port}" and seen.headers[OVERRIDE_HEADER] == "us"
        assert (seen.socket is not None) is (transport == "websocket")
    assert live.sandbox.p1.routings == 1
    assert live.notes.all("workspace_routing")


async def test_one_request_asks_for_all(live: Live) -> None:
    elsewhere(live)
    answers = await asyncio.gather(*(live.post(ask()) for _ in range(8)))
    assert [one.status for one in answers] == [200] * 8 and live.sandbox.p1.routings == 1
    assert {seen.headers[OVERRIDE_HEADER] for seen in live.sandbox.p1.requests} == {"us"}


@with_live(openai_routes=True)
async def test_native_requests_and_searches_follow_it(live: Live) -> None:
    elsewhere(live)
    assert (await live.post({"model": "gpt-5.5", "input": "hello"}, "/v1/responses")).status == 200
    tool = {"type": "web_search_20250305", "name": "web_search"}
    forced = {"tools": [tool], "tool_choice": {"type": "tool", "name": "web_search"}}
    await live.post(ask("Perform a web search for the query: rust", **forced))
    for seen in (live.sandbox.p1.requests[-1], live.sandbox.p1.searches[-1]):
        assert seen.headers["host"].startswith("localhost:") and seen.headers[OVERRIDE_HEADER] == "us"


@with_live(p1_workspace_routing=False)
async def test_nobody_has_to_ask(live: Live) -> None:
    elsewhere(live)
    assert (await live.post(ask())).status == 200
    assert live.sandbox.p1.routings == 0 and OVERRIDE_HEADER not in live.sandbox.p1.requests[-1].headers


NOW = [time.time()]


@with_live(clock=lambda: NOW[0])
async def test_an_answer_is_old_after_an_hour_and_a_failure_keeps_the_last(live: Live) -> None:
    elsewhere(live)
    await live.post(ask())
    live.sandbox.p1.options.workspace_origin = "http://not.an.origin"
    for later, asked in ((3_500.0, 1), (200.0, 2), (200.0, 2), (200.0, 3)):
        NOW[0] += later
        assert (await live.post(ask())).status == 200
        assert live.sandbox.p1.requests[-1].headers["host"].startswith("localhost:")
        assert live.sandbox.p1.routings == asked
    assert live.notes.all("workspace_routing_unknown")
