"""What the caller sees of each way in which an answer over a socket can fail, how often the upstream is asked for that,
and that nothing is left behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from harness import ask, tool, until
from outcomes import Broken, Good, Outcome, Refused, is_broken, is_good
from ws_upstream import (
    CREATED,
    Asking,
    Backend,
    Peer,
    Play,
    call_events,
    completed,
    delta,
    done,
    leaving_nothing,
    provider_sockets,
    said,
    saying,
    stalled,
)

from proxy.core.identity import Owner
from proxy.providers.p1_codex.socket import connection as websocket
from proxy.providers.p1_codex.socket.pool import PoolLimits
from proxy.providers.upstream.responses_wire import ResponsesWire

TOOLS = [tool("Bash")]
#: For the cases that are about time; the others must not hang on how busy the machine is.
QUICK = {"start": 0.15, "idle": 0.15, "ping": 0.02}
AGAIN = Good(2, waits=(1.5,))

OPEN_CALL = call_events("ls", "c1")[:2]
WHOLE_CALL = call_events("ls", "c1")
OPEN_REASONING = {"type": "response.output_item.added", "output_index": 1, "item": {"type": "reasoning", "id": "rs"}}


def raw(data: bytes) -> Play:
    """The beginning of an answer, then these bytes."""

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        await peer.say(CREATED)
        peer.raw(data)
        await peer.listen()

    return play


async def binary(peer: Peer, frame: dict[str, Any]) -> None:
    await peer.ws.send_bytes(b"{}")
    await peer.listen()


async def half_a_frame(peer: Peer, frame: dict[str, Any]) -> None:
    await peer.say(CREATED)
    peer.raw(b"\x81\x7e\x10\x00abc")
    await asyncio.sleep(0.02)
    peer.cut()


def garbage(count: int) -> Play:
    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        for _ in range(count):
            await peer.ws.send_str("no json")
        await peer.ws.send_str("[1]")
        await peer.say(*said("fine", "r"))

    return play


async def torn_event(peer: Peer, frame: dict[str, Any]) -> None:
    """A whole call, and a text that may have been the beginning of more."""
    await peer.say(CREATED, *WHOLE_CALL)
    await peer.ws.send_str('{"type":"response.output_it')
    await asyncio.sleep(0.02)
    peer.cut()


async def deaf(peer: Peer, frame: dict[str, Any]) -> None:
    """Speaks once, then reads no more."""
    await peer.say(CREATED)
    await stalled(peer, frame)


async def split(peer: Peer, frame: dict[str, Any]) -> None:
    """A text in two frames, with a ping in between, and a ping in front."""
    await peer.ws.ping(b"hello")
    text = b'{"type":"response.output_text.delta","output_index":0,"delta":"fine"}'
    peer.raw(b"\x01\x0a" + text[:10] + b"\x89\x00" + b"\x80" + bytes([len(text) - 10]) + text[10:])
    await peer.say(completed("r"))


async def pinged(peer: Peer, frame: dict[str, Any]) -> None:
    """Answers when its ping was."""
    peer.ws._autoping = False
    await peer.ws.ping(b"here?")
    assert (await peer.ws.receive()).data == b"here?"
    await peer.say(*said("fine", "r"))


async def flood(peer: Peer, frame: dict[str, Any]) -> None:
    """More pings at a time than one look takes; only the newest of a look is answered."""
    peer.ws._autoping = False
    peer.raw(b"".join(b"\x89\x04%04d" % number for number in range(1000)))
    pongs = [(await peer.ws.receive()).data]
    while pongs[-1] != b"0999":
        pongs.append((await peer.ws.receive()).data)
    assert pongs == sorted(pongs) and len(pongs) <= 1000 // websocket.MAX_TAKEN + 4
    await peer.say(*said("fine", "r"))


async def ping_and_cut(peer: Peer, frame: dict[str, Any]) -> None:
    """Nobody takes the pong; the answer is whole all the same."""
    await peer.ws.ping(b"bye")
    await peer.say(*said("fine", "r"))
    peer.cut()


async def bad_text(peer: Peer, frame: dict[str, Any]) -> None:
    peer.raw(b"\x81\x02\xff\xfe")
    await peer.listen()


#: What the sandbox's table of faults (`test_p1_websocket_faults`) does not have.
CASES: list[tuple[str, Play, Outcome]] = [
    (
        "cut after a call, in another",
        saying(CREATED, *WHOLE_CALL, *call_events("a", "c2", 1)[:1]),
        Broken(open="tool_use"),
    ),
    ("cut after a call, in an event", torn_event, Broken(words="inside an event")),
    ("cut after a call, in reasoning", saying(CREATED, *WHOLE_CALL, OPEN_REASONING), Broken()),
    ("cut after text", saying(CREATED, delta("Hel"), done("Hel")), Broken()),
    ("no pongs after the beginning", deaf, AGAIN),
    ("a broken frame", raw(b"\xf1\x00"), Refused(502, "api_error", words="protocol")),
    ("half a frame", half_a_frame, AGAIN),
    ("texts that are no objects", garbage(15), Good()),
    ("a split frame", split, Good()),
    ("a ping that must be answered", pinged, Good()),
    ("a flood of pings", flood, Good()),
    ("a ping, an answer, a cut", ping_and_cut, Good()),
]


@pytest.mark.parametrize(("name", "play", "outcome"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_fault_comes_out_as_the_table_says(
    asking: Asking, backend: Backend, name: str, play: Play, outcome: Outcome, stream: bool
) -> None:
    backend.plays.append(play)
    async with asking(timers=QUICK if play is deaf else {}) as live, leaving_nothing(backend):
        answer = await live.post(ask(tools=TOOLS, stream=stream))
        if isinstance(outcome, Good):
            is_good(answer, outcome, stream)
            assert tuple(live.sleeps) == outcome.waits and len(backend.asked) == outcome.attempts
        elif isinstance(outcome, Refused):
            assert (answer.status, answer.error["type"]) == (outcome.status, outcome.type)
            assert outcome.words in answer.error["message"] and len(backend.asked) == outcome.attempts
        else:
            is_broken(answer, outcome, stream)
            assert len(backend.asked) == 1 and outcome.words in str(answer.raw)
        assert not backend.posts and not live.notes.all("internal_error")
        assert len({asked.socket for asked in backend.asked}) == len(backend.asked)
        assert not any(asked.previous for asked in backend.asked)


@pytest.mark.parametrize("play", [binary, bad_text, garbage(16), raw(b"\xf1\x00")])
async def test_unreadable_frames_are_told_with_a_way_out(asking: Asking, backend: Backend, play: Play) -> None:
    backend.plays.append(play)
    async with asking() as live:
        assert (await live.post(ask())).error["message"].endswith("; p1.transport=http goes without WebSocket")


# -- somebody leaves


@pytest.mark.parametrize(
    "play", [stalled, deaf, saying(delta("Hel"), then="listen"), saying(*OPEN_CALL, then="listen")]
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_takes_its_socket_along(
    asking: Asking, backend: Backend, play: Play, stream: bool
) -> None:
    async with asking(p1_previous_response_id=True) as live, leaving_nothing(backend):
        for step in (play, stalled):
            backend.plays.append(step)
            asked = len(backend.asked)
            task = asyncio.ensure_future(
                live.post(ask(stream=stream, tools=TOOLS), headers={"x-agent-session-id": "s"})
            )
            await until(lambda asked=asked: len(backend.asked) > asked)
            await asyncio.sleep(0.02)
            task.cancel()
            await until(lambda: backend.open == 0, 1.0)
            sockets = provider_sockets(live)
            await until(lambda sockets=sockets: not len(sockets.continuations) and not len(sockets.pool))


@pytest.mark.parametrize("ticks", [0, 1, 2])
@pytest.mark.parametrize("step", ["_evict", "close"])
async def test_who_leaves_while_sockets_are_closed_leaves_none_open(
    asking: Asking, backend: Backend, step: str, ticks: int
) -> None:
    async with asking(tuning=(PoolLimits(most=2, least=0),), p1_previous_response_id=True) as live:
        sockets = provider_sockets(live)
        for session in "abc":
            assert sockets.put(Owner(session), await sockets.open(backend.url, {}, hurried=False, renewed=False))
        assert backend.open == len(sockets.pool) == 3
        closing = asyncio.create_task(getattr(sockets, step)())
        for _ in range(ticks + 1):
            await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait({closing})
        assert len(sockets.pool) == 0
        await until(lambda: backend.open == 0, 1.0)


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_an_upstream_that_takes_nothing_is_given_up(
    asking: Asking, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request of many megabytes, and nobody reads it."""

    over, transports = asyncio.Event(), []
    send = websocket.Socket.send

    async def counted(_: Any) -> int:
        return 1  # millions of tokens take seconds

    async def unread(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(compress=False)
        await ws.prepare(request)
        request.transport.pause_reading()  # type: ignore[union-attr]
        await over.wait()
        return ws

    async def watched(self: websocket.Socket, frame: bytes) -> None:
        transports.append(self._connection._conn.transport)  # type: ignore[union-attr]
        await send(self, frame)

    monkeypatch.setattr(ResponsesWire, "estimate", counted)
    monkeypatch.setattr(websocket.Socket, "send", watched)
    backend.upgrades.append(unread)
    async with asking(timers={**QUICK, "start": 0.1}) as live:
        answer = await live.post(ask("x" * 12_000_000))
        assert answer.status == 502 and "100 ms" in answer.error["message"] and not backend.asked
        await until(lambda: transports[0].is_closing() and transports[0].get_write_buffer_size() == 0)
        over.set()
