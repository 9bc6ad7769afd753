"""What the monitor is told of requests, and who may look."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from harness import Live, ask, until, with_live

from proxy.observe.lifecycle import SPANS
from proxy.observe.monitor.snapshot import RequestRow, SessionRow, Snapshot, of_json
from proxy.server.request import state
from proxy.server.request.state import STATE
from proxy.server.routes import watching

SESSION = {"x-claude-code-session-id": "s"}
SYSTEM = "# Environment\n - Primary working directory: /projects/example\n"


async def seen(live: Live) -> Snapshot:
    answer = await live.get("/monitor")
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    return of_json(answer.json)


def only(told: Snapshot) -> tuple[RequestRow, SessionRow]:
    (request,), (session,) = told.recent, told.sessions
    assert told.active == ()
    return request, session


@with_live()
async def test_a_request_is_shown_with_all_that_is_known_of_it(live: Live) -> None:
    assert (await seen(live)).recent == ()
    headers = {**SESSION, "x-claude-code-agent-id": "a", "x-claude-code-parent-agent-id": "b", "x-request-id": "mine"}
    answer = await live.post(ask(model="opus", system=SYSTEM, output_config={"effort": "low"}), headers=headers)
    request, session = only(await seen(live))
    assert request.id == answer.headers["request-id"]
    assert (request.status, request.http, request.endpoint, request.number) == ("completed", 200, "messages", 1)
    assert (request.session, request.agent, request.parent, request.client_id) == ("s", "a", "b", "mine")
    assert (request.provider, request.requested, request.effort) == ("p1", "opus", "low")
    assert (request.project, request.attempts) == ("example", 1)
    usage = answer.json["usage"]
    assert request.output_tokens == usage["output_tokens"] == session.output_tokens
    assert request.cached_tokens == usage["cache_read_input_tokens"] == session.cached_tokens
    assert [(agent.id, agent.parent) for agent in session.agents] == [("a", "b")]
    assert set(request.timings) <= set(SPANS)


@with_live()
async def test_a_session_in_the_body_is_the_session_of_the_request(live: Live) -> None:
    await live.post(ask(metadata={"user_id": json.dumps({"session_id": "inside"})}))
    request, session = only(await seen(live))
    assert (request.session, session.id, session.requests, live.watcher.names[1]) == (
        "inside",
        "inside",
        1,
        "SessionFound",
    )


# -- who follows


async def event_of(response: aiohttp.ClientResponse) -> bytes:
    """The next event or comment of a stream, without the empty line behind it."""
    async with asyncio.timeout(10):
        return (await response.content.readuntil(b"\n\n"))[:-2]


@pytest.fixture
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "EVERY_S", 0.02)
    monkeypatch.setattr(watching, "KEEPALIVE_S", 0.05)


@pytest.mark.usefixtures("_quickly")
@with_live()
async def test_whoever_follows_is_sent_what_changes_and_comments_while_nothing_does(live: Live) -> None:
    store = live.app[STATE].monitor
    async with live.client.get(f"{live.url}/monitor/events") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-store"
        first = await event_of(response)
        assert of_json(json.loads(first.removeprefix(b"data: "))).recent == ()
        while await event_of(response) != b":":
            pass
        store.notice("info", "something")
        while (data := await event_of(response)) == b":":
            pass
        assert of_json(json.loads(data.removeprefix(b"data: "))).notices[0].message == "something"
        assert store.wants_project
    await until(lambda: live.app[STATE].watchers._there == 0)


@with_live()
async def test_all_who_follow_share_one_snapshot_and_there_are_not_too_many(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MAX_WATCHERS", 2)
    monkeypatch.setattr(state, "EVERY_S", 60.0)  # within which both come, however busy the machine is
    store, made = live.app[STATE].monitor, []
    snapshot = store.snapshot
    monkeypatch.setattr(store, "snapshot", lambda: made.append(1) or snapshot())
    async with (
        live.client.get(f"{live.url}/monitor/events") as one,
        live.client.get(f"{live.url}/monitor/events") as other,
    ):
        assert await event_of(one) == await event_of(other)
        assert len(made) == 1
        refused = await live.get("/monitor/events")
        assert refused.status == 429 and "close one" in refused.error["message"]
    await until(lambda: live.app[STATE].watchers._there == 0)
    assert (await live.request("HEAD", "/monitor/events")).status == 200


@pytest.mark.usefixtures("_quickly")
@with_live()
async def test_the_end_of_the_application_ends_it_at_once(live: Live) -> None:
    async with live.client.get(f"{live.url}/monitor/events") as response:
        await event_of(response)
        live.app[STATE].watchers.close()
        async with asyncio.timeout(5):
            await response.read()


@with_live()
async def test_a_browser_is_told_what_turns_the_page_on(live: Live) -> None:
    answer = await live.get("/monitor", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert answer.status == 404 and "PROXY_MONITOR_PAGE=1" in answer.error["message"]


@with_live(monitor_page=True)
async def test_a_browser_is_given_the_page_where_it_is_on(live: Live) -> None:
    answer = await live.get("/monitor", Accept="text/html")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/html")
    assert (await live.get("/monitor")).json["version"] == 1
