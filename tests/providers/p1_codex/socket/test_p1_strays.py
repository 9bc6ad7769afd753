"""What comes over a socket without being the answer to the request that was sent over it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from harness import Live, ask, until, with_live
from outcomes import Broken, Good, is_broken, is_good
from p1_events import CREATED, LIMITS, call_events, completed, delta, done, failed, message, said
from talks import TOOLS, Talk
from ws_upstream import Backend, Peer, Play, Upgrade, frames_of, leaving_nothing

WRONG = "not the answer"


def strays(*parts: list[dict[str, Any]], then: str = "listen") -> Play:
    """What is late of an earlier answer, each part in one piece; then nothing more, or the next request."""

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        for part in parts:
            peer.say_at_once(*part)
            await asyncio.sleep(0.02)
        if then == "listen":
            await peer.listen()

    return play


BEGUN = {"type": "response.created", "response": {"id": "resp_2"}}


@with_live(p1_previous_response_id=True)
@pytest.mark.parametrize(
    "late",
    [
        [completed("resp_1")],
        [delta(WRONG), done(message(WRONG)), completed("resp_1")],
        [{"type": "response.created", "response": {"id": "resp_1"}}, delta(WRONG)],
        [delta(WRONG), LIMITS, BEGUN],
        [call_events(WRONG, "c9")[-1]],
    ],
    ids=["end", "text and end", "beginning", "text and the next beginning", "call"],
)
@pytest.mark.parametrize("apart", [True, False], ids=["apart", "in one piece"])
async def test_what_is_left_of_the_answer_before_is_not_taken_for_the_next_one(
    talk: Talk, backend: Backend, late: list[dict[str, Any]], apart: bool
) -> None:
    """On a socket that is used again an answer begins where the backend says so."""
    await talk.turn("one")
    answer = [BEGUN, delta("fine"), done(message("fine")), completed("resp_2")]
    backend.plays.append(strays(*([late, answer] if apart else [[*late, *answer]]), then="next"))
    await talk.turn("two")
    said = [block["text"] for message in talk.messages for block in message["content"]]
    assert said == ["one", "fine", "two", "fine"] and talk.live.sleeps == []
    backend.plays.append(strays([failed(code="slow_down")]))  # which needs no beginning
    await talk.turn("three")
    assert backend.history == [(1, None), (1, "resp_1"), (1, "resp_2"), (2, None)] and talk.live.sleeps == [1.5]


@with_live(p1_previous_response_id=True, timers={"start": 0.1})
async def test_what_is_left_of_the_answer_before_is_no_sign_of_the_next_one(talk: Talk, backend: Backend) -> None:
    await talk.turn("one")
    backend.plays.append(strays(*[[delta(WRONG)]] * 20))
    await talk.turn("two")
    assert backend.history == [(1, None), (1, "resp_1"), (2, None)] and talk.live.sleeps == [1.5]


@with_live(p1_previous_response_id=True)
async def test_an_answer_that_the_client_saw_half_of_is_not_ended_by_another_one(talk: Talk, backend: Backend) -> None:
    await talk.turn("one")
    backend.plays.append(strays([BEGUN, delta("Hel")], [completed("resp_1")]))
    messages = [*talk.messages, {"role": "user", "content": "two"}]
    answer = await talk.live.stream(ask(messages, **talk.members), headers=talk.headers)
    is_broken(answer, Broken(words="belongs to an earlier request; p1.transport=http"), stream=True)
    assert len(backend.asked) == 2
    await until(lambda: backend.open == 0)


def upgraded(early: bytes) -> Upgrade:
    """A 101 and this in one piece, and a while later an answer."""

    async def handler(request: web.Request) -> web.StreamResponse:
        accept = web.WebSocketResponse()._handshake(request)[0]["Sec-WebSocket-Accept"]
        head = f"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        assert request.transport is not None
        request.transport.write(head.encode() + early)
        await asyncio.sleep(0.05)
        request.transport.write(frames_of(*said("fine", "r")))
        await asyncio.sleep(0.05)
        request.transport.abort()
        return web.Response()

    return handler


EARLY: list[tuple[bytes, Good]] = [
    (frames_of(*said(WRONG, "r")), Good(2, waits=(1.5,))),
    (frames_of(LIMITS, CREATED), Good(2, waits=(1.5,))),
    (b"\x88\x02\x03\xe8", Good(2, waits=(1.5,))),  # a goodbye
    (frames_of(LIMITS), Good()),
    (b"\x89\x02hi", Good()),  # a ping
]


@pytest.mark.parametrize(("early", "outcome"), EARLY, ids=["answer", "beginning", "goodbye", "quota", "ping"])
async def test_an_answer_that_nobody_asked_for_is_not_taken(
    front: Live, backend: Backend, early: bytes, outcome: Good
) -> None:
    backend.upgrades.append(upgraded(early))
    async with leaving_nothing(backend):
        answer = await front.stream(ask(tools=TOOLS))
        is_good(answer, outcome, stream=True)
        assert WRONG not in str(answer.raw) and "fine" in str(answer.raw)
        assert (tuple(front.sleeps), len(backend.seen)) == (outcome.waits, outcome.attempts)


@with_live(mode="auto", p1_previous_response_id=True)
async def test_a_socket_closed_before_the_request_tells_nothing_of_its_size(talk: Talk, backend: Backend) -> None:
    backend.upgrades.append(upgraded(b"\x88\x02\x03\xf1"))  # 1009
    await talk.turn("one")
    assert len(backend.posts) == 1
    await talk.turn("two")
    assert len(backend.posts) == 1 and len(backend.asked) == 1
