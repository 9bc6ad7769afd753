"""Frames as the sandbox writes them, byte by byte; that a client can read them is tested with the sockets."""

import pytest
from aiohttp import WSMsgType

from proxy.sandbox.p1.socket.answer import SOCKET, fragments, frame


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
