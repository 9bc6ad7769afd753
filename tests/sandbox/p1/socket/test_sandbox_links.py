"""Frames of the simulated P1 byte by byte, and the link to a socket: it may be slow, be watched by pings, and break."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import WSCloseCode, WSMsgType
from p1_sandbox_client import SocketClient, full, user
from samples import rows

from proxy.sandbox.p1.socket.answer import SOCKET, fragments, frame
from proxy.sandbox.p1.socket.link import Link


@pytest.mark.parametrize(
    ("size", "head"),
    [
        (0, "8100"),
        (125, "817d"),
        (126, "817e007e"),
        (65_535, "817effff"),
        (65_536, "817f0000000000010000"),
    ],
)
def test_every_form_of_a_length(size: int, head: str) -> None:
    assert frame(b"x" * size) == bytes.fromhex(head) + b"x" * size


def test_kinds() -> None:
    assert frame(b"p", WSMsgType.PING) == b"\x89\x01p"
    assert frame(b"b", WSMsgType.BINARY) == b"\x82\x01b"


@pytest.mark.parametrize(
    ("payload", "count", "frames"),
    [
        (b"", 3, [b"\x81\x00"]),
        (b"a", 1, [b"\x81\x01a"]),
        (b"ab", 3, [b"\x01\x01a", b"\x80\x01b"]),
        (b"abcdefgh", 3, [b"\x01\x03abc", b"\x00\x03def", b"\x80\x02gh"]),
    ],
)
def test_fragments(payload: bytes, count: int, frames: list[bytes]) -> None:
    assert fragments(payload, count) == frames


def test_an_event_is_a_text_frame() -> None:
    assert SOCKET.encode([{"type": "a"}, {"b": "ü"}]) == b'\x81\x0c{"type":"a"}' + b'\x81\x0a{"b":"\xc3\xbc"}'


#: A body that a link of 4 MB/s takes a quarter of a second for.
LARGE = full(user("x" * 1_000_000))


async def test_a_slow_link_takes_its_time(sockets: SocketClient) -> None:
    sockets.sandbox.p1.options.link = Link(bytes_per_s=4_000_000)
    async with sockets.open() as line:
        start = time.monotonic()
        assert (await line.ask(LARGE)).types[-1] == "response.completed"
        assert time.monotonic() - start > 0.2
        assert (await line.ask()).types[-1] == "response.completed"


async def test_who_answers_pings_keeps_the_socket(sockets: SocketClient) -> None:
    sockets.sandbox.p1.options.link = Link(ping_s=0.005, pong_s=0.2)
    async with sockets.open() as line:
        listening = asyncio.ensure_future(line.listen())
        while line.pings < 5:
            await asyncio.sleep(0.005)
        await line.send({"type": "response.create", **full(), "stream": True})
        assert (await listening).types[-1] == "response.completed"
        assert sockets.sandbox.p1.sockets.seen[-1].pongs >= 5


@rows("busy", [False, True])
async def test_who_does_not_loses_it(sockets: SocketClient, busy: bool) -> None:
    """Also while an answer goes on, or a request comes."""
    sockets.sandbox.p1.options.link = Link(ping_s=0.01, pong_s=0.05)
    sockets.sandbox.p1.script.replace([{"fault": "silence_mid_text", "seconds": None}])
    async with sockets.open() as line:
        if busy:
            await line.send({"type": "response.create", **full()})
        kinds = [(await line.socket.receive()).type]
        while kinds[-1] not in (WSMsgType.CLOSE, WSMsgType.CLOSED):
            kinds.append((await line.socket.receive()).type)
        assert (line.socket.close_code, kinds.count(WSMsgType.PING)) == (1011, 1)
        assert (WSMsgType.TEXT in kinds) is busy
    await over(sockets)
    assert sockets.sandbox.p1.sockets.seen[-1].close_code == 1011


async def over(sockets: SocketClient) -> None:
    """Returns when the simulator has seen the end of every socket, and has nothing more to do."""
    async with asyncio.timeout(5):
        while sockets.sandbox.p1.sockets.open or sockets.sandbox.p1.active:
            await asyncio.sleep(0.005)


async def test_a_pong_that_waits_behind_a_large_frame_is_late(sockets: SocketClient) -> None:
    """As with every client that writes a request in one frame and reads afterwards."""
    sockets.sandbox.p1.options.link = Link(bytes_per_s=4_000_000, ping_s=0.04, pong_s=0.04)
    async with sockets.open() as line:
        reply = await line.ask(LARGE)
        assert (reply.types, reply.status) == ([], 1011)
    assert not sockets.sandbox.p1.requests


@pytest.mark.parametrize("frames", [1, 2])
async def test_a_socket_breaks_with_a_frame(sockets: SocketClient, frames: int) -> None:
    sockets.sandbox.p1.options.link = Link(frames=frames)
    async with sockets.open() as line:
        for _ in range(frames - 1):
            assert (await line.ask()).types[-1] == "response.completed"
        reply = await line.ask()
        assert reply.types == [] and line.socket.close_code == WSCloseCode.ABNORMAL_CLOSURE
    await over(sockets)
    (seen,) = sockets.sandbox.p1.sockets.seen
    assert (len(seen.frames), seen.close_code) == (frames, 1006)
