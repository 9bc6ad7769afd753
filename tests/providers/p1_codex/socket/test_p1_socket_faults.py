"""What the caller sees of each way in which an answer over a socket can fail, how often the upstream is asked for that,
and that nothing is left behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from harness import Live, ask, until, with_live
from outcomes import Broken, Good, Outcome, Refused
from p1_events import CREATED, call_events, completed, delta, done, message, said
from p1_faults import AGAIN, comes_out
from talks import TOOLS
from ws_upstream import Backend, Peer, Play, leaving_nothing, provider_sockets, saying, stalled

from proxy.core.identity import Owner
from proxy.providers.p1_codex.socket import connection as websocket
from proxy.providers.p1_codex.socket.manager import PoolLimits
from proxy.providers.upstream.responses_wire import ResponsesWire

#: For the cases that are about time; the others must not hang on how busy the machine is.
QUICK = {"start": 0.15, "idle": 0.15, "ping": 0.02}

WHOLE_CALL = call_events("ls", "c1")
OPEN_REASONING = {"type": "response.output_item.added", "output_index": 1, "item": {"type": "reasoning", "id": "rs"}}


def raw(data: bytes, *events: dict[str, Any], cut: bool = False) -> Play:
    """The beginning of an answer, then these bytes."""

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        await peer.say(CREATED, *events)
        peer.raw(data)
        if cut:
            await asyncio.sleep(0.02)
            peer.cut()
        await peer.listen()

    return play


async def garbage(peer: Peer, frame: dict[str, Any]) -> None:
    for text in (*["no json"] * 15, "[1]"):
        await peer.ws.send_str(text)
    await peer.say(*said("fine", "r"))


def holed(*output: dict[str, Any], call: bool = False) -> Play:
    """An answer in which a text is no event; the last event repeats `output`."""

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        await peer.say(CREATED, *(WHOLE_CALL if call else [delta("fi")]))
        await peer.ws.send_str('{"type":"response.output_t')
        await peer.say(*([] if call else [delta("ne")]), completed(output=list(output)))

    return play


def raw_text(text: str) -> Play:
    """The beginning of an answer, then this text, then silence."""

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        await peer.say(CREATED, delta("fine"))
        await peer.ws.send_str(text)
        await peer.listen()

    return play


UNREADABLE = Broken(words="does not repeat", open=None)

#: A whole call, and a text that may have been the beginning of more.
TORN = raw(b'\x81\x1b{"type":"response.output_it', *WHOLE_CALL, cut=True)


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


OTHER_CALL = call_events("a", "c2", 1)[0]

#: What the sandbox's table of faults (`test_p1_websocket_faults`) does not have.
CASES: list[tuple[str, Play, Outcome]] = [
    ("cut after a call, in another", saying(CREATED, *WHOLE_CALL, OTHER_CALL), Broken(open="tool_use")),
    ("cut after a call, in an event", TORN, Broken(words="inside an event")),
    ("cut after a call, in reasoning", saying(CREATED, *WHOLE_CALL, OPEN_REASONING), Broken()),
    ("cut after text", saying(CREATED, delta("Hel"), done(message("Hel"))), Broken()),
    ("no pongs after the beginning", deaf, AGAIN),
    ("a broken frame", raw(b"\xf1\x00"), Refused(502, "api_error", words="protocol")),
    ("half a frame", raw(b"\x81\x7e\x10\x00abc", cut=True), AGAIN),
    ("texts that are no objects, in front", garbage, Good()),
    ("one in the answer", holed(message("fine")), Good()),
    ("one in place of a text", holed(message("fine, and more")), UNREADABLE),
    ("one in an answer that is not repeated", holed(), UNREADABLE),
    (
        "one in place of the last event",
        raw_text('{"type":"response.completed","response":{"id":'),
        Broken(words="not JSON"),
    ),
    ("one behind the items", holed(call=True), UNREADABLE),
    ("a split frame", split, Good()),
    ("a ping that must be answered", pinged, Good()),
    ("a flood of pings", flood, Good()),
    ("a ping, an answer, a cut", ping_and_cut, Good()),
]


@pytest.mark.parametrize(("name", "play", "outcome"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_fault_comes_out_as_the_table_says(
    backend: Backend, name: str, play: Play, outcome: Outcome, stream: bool
) -> None:
    backend.plays.append(play)
    async with backend.proxy(timers=QUICK if play is deaf else {}) as live, leaving_nothing(backend):
        expected = comes_out(live, await live.post(ask(tools=TOOLS, stream=stream)), outcome, stream=stream)
        assert backend.history == [(number + 1, None) for number in range(expected.attempts)] and not backend.posts


# -- somebody leaves

HALVES = [saying(delta("Hel"), then="listen"), saying(*WHOLE_CALL[:2], then="listen")]


@with_live(p1_previous_response_id=True)
@pytest.mark.parametrize("play", [stalled, deaf, *HALVES])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_takes_its_socket_along(
    front: Live, backend: Backend, play: Play, stream: bool
) -> None:
    sockets, body, session = provider_sockets(front), ask(stream=stream, tools=TOOLS), {"x-agent-session-id": "s"}
    async with leaving_nothing(backend):
        for count, step in enumerate((play, stalled), 1):
            backend.plays.append(step)
            task = asyncio.ensure_future(front.post(body, headers=session))
            await until(lambda count=count: len(backend.asked) == count)
            await asyncio.sleep(0.02)
            task.cancel()
            await until(lambda: backend.open == 0, 1.0)
            await until(lambda: not len(sockets.continuations) and not len(sockets.pool))


@with_live(tuning=(PoolLimits(most=2, least=0),), p1_previous_response_id=True)
@pytest.mark.parametrize("ticks", [0, 1, 2])
@pytest.mark.parametrize("step", ["_evict", "close"])
async def test_who_leaves_while_sockets_are_closed_leaves_none_open(
    front: Live, backend: Backend, step: str, ticks: int
) -> None:
    sockets = provider_sockets(front)
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
async def test_an_upstream_that_takes_nothing_is_given_up(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
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

    async def watched(self: websocket.Socket, *given: Any) -> None:
        transports.append(self._connection._conn.transport)  # type: ignore[union-attr]
        await send(self, *given)

    monkeypatch.setattr(ResponsesWire, "estimate", counted)
    monkeypatch.setattr(websocket.Socket, "send", watched)
    backend.upgrades.append(unread)
    async with backend.proxy(timers={"start": 0.1}) as live:
        answer = await live.post(ask("x" * 12_000_000))
        assert answer.status == 502 and "100 ms" in answer.error["message"] and not backend.asked
        await until(lambda: transports[0].is_closing() and transports[0].get_write_buffer_size() == 0)
        over.set()
