"""Sockets over links as they are: slow ones on which the backend insists on pongs, such as break, and long pauses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from harness import Live, ask, until
from outcomes import Good, is_good
from talks import Talk
from ws_upstream import goes_well, leaving_nothing, new_session, provider_sockets

from proxy.providers.p1_codex.socket.connect import SocketTimers
from proxy.providers.p1_codex.socket.connection import FRAGMENT_BYTES
from proxy.providers.p1_codex.socket.manager import DEAD_SOCKETS
from proxy.providers.upstream.responses_wire import ResponsesWire
from proxy.sandbox import Sandbox
from proxy.sandbox.p1.socket.link import Limits, Link

#: Continued conversations.
KEPT = {"p1_transport": "auto", "p1_previous_response_id": True}

#: What 5 MB at 100 kB/s and pings of 20 s are, a hundred times as fast and half as long.
SLOW = Link(bytes_per_s=10_000_000, ping_s=0.02, pong_s=0.1)
LONG = "x" * 2_500_000


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens of megabytes take seconds to count."""

    async def one(_: Any) -> int:
        return 1

    monkeypatch.setattr(ResponsesWire, "estimate", one)


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return getattr(request, "param", KEPT)


@pytest.fixture
async def live(sandbox: Sandbox, tmp_path: Path, options: dict[str, Any]) -> AsyncIterator[Live]:
    async with Live(sandbox, tmp_path, **options) as running:
        yield running


@pytest.mark.parametrize("options", [KEPT, {"p1_transport": "websocket"}], indirect=True, ids=["auto", "websocket"])
@pytest.mark.usefixtures("uncounted")
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_long_request_gets_through_a_slow_link(live: Live) -> None:
    """The backend's pings are answered meanwhile; the whole request is sent once."""
    p1 = live.sandbox.p1
    p1.options.link, p1.options.context_limit = SLOW, 10**9
    async with leaving_nothing(p1.sockets, live):
        is_good(await live.post(ask(LONG), headers=new_session()), Good(), stream=False)
        (seen,) = p1.sockets.seen
        assert seen.pongs >= 3 and [frame.size > len(LONG) for frame in seen.frames] == [True] and not live.sleeps


@pytest.mark.parametrize("options", [KEPT, {"p1_transport": "websocket"}], indirect=True, ids=["auto", "websocket"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.usefixtures("uncounted")
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_who_leaves_in_the_middle_of_a_long_request_takes_its_socket_along(live: Live, stream: bool) -> None:
    p1, headers = live.sandbox.p1, new_session()
    p1.options.link = SLOW
    asked = asyncio.ensure_future(live.post(ask(LONG, stream=stream), headers=headers))
    await until(lambda: p1.sockets.seen and p1.sockets.seen[0].pongs)
    asked.cancel()
    await until(lambda: p1.sockets.open == 0, 1.0)
    assert not p1.sockets.seen[0].frames and not len(provider_sockets(live).pool)
    p1.options.link = Link()
    is_good(await live.post(ask(), headers=headers), Good(), stream=False)
    assert [frame.socket for frame in p1.requests] == [2]


@pytest.mark.parametrize("size", [FRAGMENT_BYTES * part // 2 + extra for part in (1, 2, 3, 4) for extra in (-1, 0, 1)])
async def test_a_message_arrives_as_it_was_whatever_its_length(live: Live, size: int) -> None:
    await Talk(live).turn("")
    (first,) = live.sandbox.p1.requests
    words = "é" * 3 + "x" * (size - first.size - 6)
    await Talk(live, "t").turn(words)
    assert live.sandbox.p1.requests[-1].size == size
    assert live.sandbox.p1.requests[-1].body["input"][-1]["content"][0]["text"] == words


# -- pauses

PINGED = Link(ping_s=0.005, pong_s=0.2)


async def test_a_conversation_is_gone_on_from_after_a_pause_of_many_pings(live: Live) -> None:
    p1, talk = live.sandbox.p1, Talk(live)
    p1.options.link = PINGED
    await talk.turn("one")
    (seen,) = p1.sockets.seen
    for number, words in enumerate(("two", "three"), 1):
        await until(lambda number=number: seen.pongs >= 10 * number)
        await talk.turn(words)
    assert [frame.socket for frame in p1.requests] == [1, 1, 1] and len(p1.sockets.seen) == 1
    assert ["previous_response_id" in frame.body for frame in p1.requests] == [False, True, True]
    await live.__aexit__()
    await until(lambda: p1.sockets.open == 0)
    assert seen.close_code == 1000


async def test_no_ping_is_lost_when_a_turn_takes_a_socket_over(live: Live) -> None:
    """A single one would end the socket."""
    p1, talk = live.sandbox.p1, Talk(live)
    p1.options.link = Link(ping_s=0.001, pong_s=0.2)
    for number in range(25):
        await talk.turn(f"word {number}")
        await asyncio.sleep(number % 5 / 1000)
    assert {frame.socket for frame in p1.requests} == {1} and p1.sockets.seen[0].pongs >= 5


async def test_a_long_conversation_is_gone_on_from(live: Live) -> None:
    talk = Talk(live)
    await talk.turns("x" * 700_000, "two", "three")
    assert [frame.size > 700_000 for frame in live.sandbox.p1.requests] == [True, False, False]


@pytest.mark.parametrize("ticks", range(4))
async def test_who_leaves_while_it_takes_a_socket_over_leaves_none_open(live: Live, ticks: int) -> None:
    await Talk(live).turn("one")
    sockets, opened = provider_sockets(live), live.sandbox.p1.sockets
    (owner,) = sockets.pool._waiting
    taking = asyncio.create_task(sockets.take(owner))
    for _ in range(ticks):
        await asyncio.sleep(0)
    taking.cancel()
    await asyncio.wait({taking})
    if not taking.cancelled():  # it was faster
        await taking.result().close()
    await until(lambda: opened.open == len(sockets.pool) == int(ticks == 0))


# -- links that break, and edges that refuse


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_sockets_that_die_with_every_frame_make_room_for_http(live: Live, stream: bool) -> None:
    p1, sockets = live.sandbox.p1, provider_sockets(live)
    p1.options.link = Link(frames=1)
    assert (await live.post(ask(stream=stream), headers=new_session())).status == 502  # it may be at work on each
    assert (p1.sockets.total, p1.total_requests) == (DEAD_SOCKETS + 1, 0)
    for _ in range(3):
        await goes_well(live)
    assert (p1.sockets.total, p1.total_requests) == (DEAD_SOCKETS + 1, 3)
    reasons = {fields["message"] for fields in live.notes.all("codex_websocket_fallback")}
    assert len(reasons) == 1 and "opened and died" in reasons.pop()
    now, p1.options.link = sockets.now, Link()
    sockets.now = lambda: now() + SocketTimers().rest + 1
    for _ in range(2):
        await goes_well(live)
    assert (p1.sockets.total, p1.total_requests) == (DEAD_SOCKETS + 3, 5) and sockets.health.dead == 0


async def test_a_socket_that_dies_between_turns_is_no_sign(live: Live) -> None:
    """Each brings an answer, and dies with the second frame: every turn is sent over a new one, none over HTTP."""
    p1, talk = live.sandbox.p1, Talk(live)
    p1.options.link = Link(frames=2)
    await talk.turns(*"abcdef")
    assert [frame.socket for frame in p1.requests] == [1, 2, 3, 4, 5, 6] and len(live.sleeps) == 5


@pytest.mark.parametrize("options", [{"p1_transport": "websocket"}], indirect=True)
async def test_who_wants_sockets_only_gets_no_http(live: Live) -> None:
    live.sandbox.p1.options.link = Link(frames=1)
    for number in (1, 2):
        assert (await live.post(ask())).status == 502
        assert (live.sandbox.p1.sockets.total, live.sandbox.p1.total_requests) == (4 * number, 0)


async def test_a_burst_of_refused_upgrades_keeps_nobody_waiting_for_long(sandbox: Sandbox, tmp_path: Path) -> None:
    """Five of twenty are let in; the others come again a second apart, not eight."""
    second, waits, p1 = asyncio.Event(), [], sandbox.p1

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if seconds == 3.0:  # before the second upgrade of a request
            await second.wait()

    async with Live(sandbox, tmp_path, p1_transport="websocket", sleep=sleep) as live:
        await goes_well(live)
        p1.options.limits, p1.sockets.clock = Limits(per_second=6), lambda: 0.0  # with the first
        asked = [asyncio.ensure_future(goes_well(live)) for _ in range(20)]
        await until(lambda: p1.sockets.total == 21)
        await until(lambda: waits.count(3.0) == 15)
        p1.options.limits = Limits()
        second.set()
        await asyncio.gather(*asked)
        assert [seen.status for seen in p1.sockets.seen].count(403) == 15 and p1.sockets.total == 36
        assert max(one for one in waits if one != 3.0) <= 1.0
