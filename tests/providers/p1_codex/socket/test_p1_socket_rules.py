"""The rules of sockets as values: distance, timers, frames, the pool."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import WSCloseCode, WSMessage, WSMsgType
from aiohttp.http import WebSocketError
from samples import rows

from proxy.core.identity import Owner
from proxy.errors import PROTOCOL_ERROR
from proxy.providers.p1_codex.socket import frames, manager
from proxy.providers.p1_codex.socket.connect import SUCCESSES, ConnectLimiter, SocketTimers, UpgradeBackoff, socket_url
from proxy.providers.p1_codex.socket.connection import CLOSED, _end_of
from proxy.providers.p1_codex.socket.exchange import PING, Keepalive, is_complete
from proxy.providers.p1_codex.socket.handshake import HandshakeFailed
from proxy.providers.p1_codex.socket.manager import DEAD_SOCKETS, Pool, PoolLimits, SocketHealth

# -- distance


def refused(backoff: UpgradeBackoff, times: int = 1) -> UpgradeBackoff:
    """Upgrades that start one after the other, each refused before the next."""
    for _ in range(times):
        start = max(backoff.since, 0.0) + 1
        backoff = backoff.refused(start, start + 0.5)
    return backoff


def test_the_distance_grows_with_refusals_and_shrinks_with_successes() -> None:
    assert [refused(UpgradeBackoff(), times).seconds for times in range(6)] == [0, 1, 2, 4, 8, 8]
    backoff = refused(UpgradeBackoff(), 5)
    for expected in (4, 2, 1, 0):
        for _ in range(SUCCESSES):
            assert backoff.seconds > expected
            backoff = backoff.succeeded()
        assert backoff.seconds == expected


def test_refusals_of_one_burst_count_once() -> None:
    """Of those that were under way already when the first of them was refused."""
    backoff = UpgradeBackoff()
    for answered in range(15):
        backoff = backoff.refused(started=10.0, now=10.2 + answered / 100)
    assert backoff.seconds == 1
    halved = refused(backoff, 2)
    for _ in range(SUCCESSES):
        halved = halved.succeeded()
    assert (halved.seconds, halved.refused(10.0, 20.0).seconds) == (2, 2)
    assert backoff.refused(started=10.3, now=10.4).seconds == 2


def test_a_refusal_starts_the_count_again() -> None:
    backoff = refused(UpgradeBackoff())
    for _ in range(SUCCESSES - 1):
        backoff = backoff.succeeded()
    assert refused(backoff).successes == 0 and backoff.succeeded().seconds == 0


@pytest.mark.parametrize(("floor", "grown", "back"), [(0.5, 1.0, 0.5), (3.0, 6.0, 3.0), (10.0, 10.0, 10.0)])
def test_the_configured_distance_is_never_undercut(floor: float, grown: float, back: float) -> None:
    backoff = refused(UpgradeBackoff(floor))
    assert backoff.seconds == grown
    for _ in range(SUCCESSES * 3):
        backoff = backoff.succeeded()
    assert backoff.seconds == back and UpgradeBackoff(floor).succeeded() == UpgradeBackoff(floor)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.now += seconds


async def started(count: int, floor: float = 0.0, *, burst: int = 0, patience: float = math.inf) -> list[float]:
    """When so many upgrades start that are asked for at the same moment; at once or never with such patience."""
    time, starts, cleared = Time(), [], 0

    async def evict() -> None:
        nonlocal cleared
        cleared += 1

    limiter = ConnectLimiter(floor, now=lambda: time.now, sleep=time.sleep, evict=evict)
    for _ in range(burst):
        limiter.refused(time.now)

    async def one() -> None:
        asked = time.now
        try:
            await limiter.wait(patience)
        except HandshakeFailed:
            assert time.now == asked
            return
        starts.append(time.now - 100)

    await asyncio.gather(*(one() for _ in range(count)))
    assert cleared == len(starts)
    return starts


async def test_upgrades_start_at_once_until_one_is_refused() -> None:
    """One in a hurry does not wait long."""
    assert await started(8) == [0.0] * 8
    assert await started(3, 0.25) == [0.0, 0.25, 0.5]
    assert await started(3, burst=15) == [0.0, 1.0, 2.0]
    assert await started(5, patience=0.0) == [0.0] * 5
    assert await started(5, burst=15, patience=2.0) == [0.0, 1.0, 2.0]


async def test_a_distance_that_grew_meanwhile_ends_the_wait() -> None:
    time = Time()

    async def evict() -> None:
        limiter.refused(time.now)  # as by the answer to an earlier upgrade

    limiter = ConnectLimiter(1.0, now=lambda: time.now, sleep=time.sleep, evict=evict)
    passed = await asyncio.gather(*(limiter.wait(2.0) for _ in range(3)), return_exceptions=True)
    assert [isinstance(one, HandshakeFailed) for one in passed] == [False, False, True]
    await limiter.wait()  # nobody is left in front
    assert time.now == 100 + 2 + 4


# -- whether sockets are worth a try


def test_sockets_that_die_one_after_another_are_left_alone_for_a_while() -> None:
    health = SocketHealth()
    for now in range(DEAD_SOCKETS):
        assert health.objection(now, 300.0, b"") is None
        health = health.opened().died(float(now))
    last = DEAD_SOCKETS - 1
    assert "died" in (health.objection(last + 300.0, 300.0, b"x") or "")
    assert health.objection(last + 300.1, 300.0, b"") is None
    assert health.opened().objection(last + 300.0, 300.0, b""), "that one opens says nothing"
    assert health.died(400.0).objection(500.0, 300.0, b""), "after the rest one more is enough"
    assert health.answered().died(400.0).objection(400.0, 300.0, b"") is None


def test_a_refusal_that_lasts_is_over_when_an_upgrade_works() -> None:
    health = SocketHealth().refused("status 426", 1.0, b"one")
    assert health.objection(2.0, 300.0, b"one") == "an earlier upgrade failed (status 426)"
    assert health.opened().objection(2.0, 300.0, b"one") is None
    assert health.objection(2.0, 300.0, b"another sign-in") is None


# -- timers


T = SocketTimers()


def alive_until(keepalive: Keepalive, end: float, *, progress: bool = False) -> list[tuple[float, str]]:
    """What is due while a frame comes every ten seconds."""
    due, now = [], 0.0
    while now <= end:
        now += 10
        verdict = keepalive.due(now)
        if verdict is not None:
            due.append((now, verdict))
        if verdict not in (None, PING):
            return due
        keepalive.heard(now, progress=progress)
    return due


def test_frames_that_are_no_answer_do_not_prolong_the_wait() -> None:
    assert alive_until(Keepalive(T, 0.0), 400) == [(300.0, "ws_start_timeout")]


def test_an_answer_that_pauses_is_given_up_whatever_else_comes() -> None:
    keepalive = Keepalive(T, 0.0)
    keepalive.heard(5.0, progress=True)
    assert alive_until(keepalive, 400) == [(310.0, "ws_idle_timeout")]


def test_an_answer_that_goes_on_may_take_hours() -> None:
    assert alive_until(Keepalive(T, 0.0), 10_000, progress=True) == []


def test_silence_is_pinged_and_ends_after_two_pings_without_an_answer() -> None:
    keepalive = Keepalive(T, 0.0)
    for now in (30.0, 60.0):
        assert keepalive.next == now and keepalive.due(now - 0.1) is None and keepalive.due(now) == PING
        keepalive.pinged(now)
    assert keepalive.next == 90.0 and keepalive.due(90.0) == "ws_keepalive"


def test_a_pong_keeps_a_silent_connection() -> None:
    keepalive = Keepalive(T, 0.0)
    for now in range(30, 300, 30):
        assert keepalive.due(float(now)) == PING
        keepalive.pinged(float(now))
        keepalive.heard(float(now), progress=False)
    assert keepalive.due(300.0) == "ws_start_timeout"


def test_a_request_that_goes_out_in_pieces_is_not_late() -> None:
    """Each piece shows that the connection lives; the answer is due only behind the last of them."""
    keepalive = Keepalive(T, 0.0)
    for now in range(20, 1000, 20):
        assert keepalive.due(float(now)) is None
        keepalive.moved(float(now))
    assert keepalive.due(980.0 + 299.0) == PING and keepalive.due(980.0 + 300.0) == "ws_start_timeout"


# -- frames


BODY = {"model": "gpt-5.5", "stream": True, "store": False, "input": ["I1", "I2"], "instructions": '"stream":true,'}
MARKED = {**BODY, "client_metadata": {"lane": "lite"}}


@rows("large", [False, True])
@rows("body", [BODY, MARKED])
def test_both_transports_say_the_same(body: dict[str, Any], large: bool) -> None:
    """But the lane, which HTTP tells in a header."""
    shared = frames.SharedBody(body, large=large)
    assert json.loads(shared.payload) == BODY
    frame = json.loads(shared.frame())
    assert frame == {"type": "response.create", **{key: body[key] for key in body if key != "stream"}}
    delta = json.loads(shared.frame("resp_1", 1))
    assert delta == {**frame, "previous_response_id": "resp_1", "input": ["I2"]}
    assert BODY["input"] == ["I1", "I2"]


@rows("code", frames.FAULTS)
def test_every_fault_is_an_error_in_words(code: str) -> None:
    error = frames.fault_error(code, seconds=1.5)
    assert error.kind == "transport" and error.code == (PROTOCOL_ERROR if frames.FAULTS[code].unreadable else code)
    assert "{" not in error.message
    assert ("1500 ms" in error.message) == code.endswith("timeout")
    assert frames.fault_error(code, continued=True).repeatable == (
        frames.FAULTS[code].repeatable or code == "ws_start_timeout"
    )


@rows(
    "kind, expected",
    [
        *(("response.created", True), ("error", True), ("keepalive", False), (7, False), (None, False)),
        *(("codex.rate_limits", False), ("codex.response.metadata", False)),
    ],
)
def test_only_the_answer_is_progress(kind: Any, expected: bool) -> None:
    assert frames.is_progress({"type": kind} if kind else {}) == expected


@rows(
    "event, expected",
    [
        ({"type": "response.completed", "response": {"id": "r"}}, True),
        ({"type": "response.completed", "error": None, "response": {"status": "completed", "error": None}}, True),
        ({"type": "response.completed", "response": {"error": {"code": "server_error"}}}, False),
        ({"type": "response.completed", "response": {"status": "incomplete"}}, False),
        ({"type": "response.done", "response": {}}, False),
        ({"type": "response.incomplete", "response": {}}, False),
        ({"type": "error"}, False),
    ],
)
def test_only_one_end_is_complete(event: dict[str, Any], expected: bool) -> None:
    assert is_complete(event) == expected


@rows(
    "kind, data, end",
    [
        (WSMsgType.CLOSE, 1000, CLOSED),
        (WSMsgType.CLOSED, None, CLOSED),
        (WSMsgType.BINARY, b"", "ws_binary"),
        (WSMsgType.ERROR, WebSocketError(WSCloseCode.MESSAGE_TOO_BIG, "x"), "ws_too_large"),
        (WSMsgType.ERROR, WebSocketError(WSCloseCode.PROTOCOL_ERROR, "x"), "ws_protocol"),
        (WSMsgType.ERROR, OSError("x"), CLOSED),
    ],
)
def test_ends_have_names(kind: WSMsgType, data: Any, end: str) -> None:
    assert _end_of(WSMessage(kind, data, None)) == end


@rows("scheme, expected", [("https", "wss"), ("http", "ws"), ("wss", "wss"), ("ws", "ws")])
def test_the_upgrade_has_an_address_of_its_own(scheme: str, expected: str) -> None:
    assert socket_url(f"{scheme}://127.0.0.1:1/x") == f"{expected}://127.0.0.1:1/x"


@pytest.mark.parametrize("url", ["ftp://h", "h/x", ""])
def test_other_addresses_have_no_socket(url: str) -> None:
    with pytest.raises(HandshakeFailed) as caught:
        socket_url(url)
    assert not caught.value.error.repeatable


# -- the pool


@dataclass(eq=False)
class Thing:
    number: int
    born: float = 0.0
    closed: bool = False


@pytest.fixture
def things() -> Pool[Thing]:
    return Pool()


ME = Owner("s")


def test_a_socket_is_lent_to_one_at_a_time(things: Pool[Thing]) -> None:
    thing = Thing(1)
    assert things.put(ME, thing, 0.0) and not things.put(ME, Thing(2), 0.0)
    assert things.take(Owner("s", "a")) is None
    assert things.take(ME) is thing and things.take(ME) is None


def test_old_and_closed_sockets_are_not_kept(things: Pool[Thing]) -> None:
    closed = Thing(1, closed=True)
    assert not things.put(ME, closed, 0.0) and not things.put(ME, Thing(1), manager.MAX_AGE_S + 1)
    assert things.put(ME, Thing(1), manager.MAX_AGE_S)


def test_what_waited_too_long_is_taken_out(things: Pool[Thing]) -> None:
    idle, old, dead, good = Thing(1, 1700.0), Thing(2), Thing(3, 1700.0), Thing(4, 1700.0)
    for number, (thing, since) in enumerate([(idle, 1700.0), (old, 3200.0), (dead, 3400.0), (good, 3400.0)]):
        assert things.put(Owner(str(number)), thing, since)
    dead.closed = True
    assert things.take_old(3501.0) == [idle, old, dead] and things.take_all() == [good] and len(things) == 0


def test_a_crowd_loses_those_that_waited_longest() -> None:
    limits = PoolLimits(most=50, least=40)
    things: Pool[Thing] = Pool(limits)
    crowd = [Thing(number) for number in range(limits.most + 1)]
    for thing in crowd[:-1]:
        things.put(Owner(str(thing.number)), thing, 0.0)
    assert things.take_surplus() == []
    things.take(Owner("0"))
    things.put(Owner("0"), crowd[0], 1.0)
    things.put(Owner("last"), crowd[-1], 1.0)
    assert things.take_surplus() == crowd[1:12] and len(things) == limits.least
