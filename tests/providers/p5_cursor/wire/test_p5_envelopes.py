"""Envelopes out of pieces: whole, byte by byte, cut anywhere."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import rows

from proxy.core.sizes import MAX_RATIO, UNPACKED_BYTES
from proxy.providers.p5_cursor.wire.envelopes import (
    COMPRESSED,
    END,
    MAX_PAYLOAD_BYTES,
    MAX_UNPACKED_BYTES,
    TRAILERS,
    Envelope,
    EnvelopeDecoder,
    EnvelopeError,
    call_headers,
    envelope,
)
from proxy.providers.p5_cursor.wire.protobuf import WireError, members

HI = bytes.fromhex("0a060a040a024869")
HEARTBEAT = bytes.fromhex("0a026a00")
FAILED = b'{"error":{"code":"resource_exhausted","message":"Error"}}'
TRAILER = b"grpc-status: 0\r\n"


@rows(
    "payload, flags, written",
    [
        ("616263", 0, "0000000003616263"),
        ("78797a", 1, "010000000378797a"),
        ("0a057265712d31", 0, "00000000070a057265712d31"),
        ("", 2, "0200000000"),
    ],
)
def test_a_payload_stands_behind_its_header(payload: str, flags: int, written: str) -> None:
    assert envelope(bytes.fromhex(payload), flags).hex() == written


def packed(payload: bytes, flags: int = 0) -> bytes:
    return envelope(gzip.compress(payload, mtime=0), flags | COMPRESSED)


#: What arrives, and the envelopes in it; None at the end: an error, and ... that there is more to come.
STREAMS: dict[str, tuple[bytes, list[Envelope | None]]] = {
    "nothing": (b"", []),
    "text": (bytes.fromhex("00000000080a060a040a024869"), [Envelope(False, HI)]),
    "text in gzip": (
        bytes.fromhex("010000001c1f8b0800000000000203e362e362e162f2c80400c65bdea308000000"),
        [Envelope(False, HI)],
    ),
    "heartbeat and text": (
        bytes.fromhex("00000000040a026a0000000000080a060a040a024869"),
        [Envelope(False, HEARTBEAT), Envelope(False, HI)],
    ),
    "an empty payload": (envelope(b""), [Envelope(False, b"")]),
    "an empty payload that claims to be gzip": (envelope(b"", COMPRESSED), [Envelope(False, b"")]),
    "an empty payload in gzip": (packed(b""), [Envelope(False, b"")]),
    "the end": (bytes.fromhex("02000000027b7d"), [Envelope(True, b"{}")]),
    "the end with an error": (
        bytes.fromhex(
            "02000000397b226572726f72223a7b22636f6465223a227265736f757263655f657868617573746564222c226d657373616765223a22"
            "4572726f72227d7d"
        ),
        [Envelope(True, FAILED)],
    ),
    "the end without payload": (envelope(b"", END), [Envelope(True, b"")]),
    "the end in gzip": (packed(b"{}", END), [Envelope(True, b"{}")]),
    "trailers of grpc-web": (envelope(TRAILER, TRAILERS), [Envelope(True, TRAILER)]),
    "trailers of grpc-web in gzip": (packed(TRAILER, TRAILERS), [Envelope(True, TRAILER)]),
    "text and the end": (envelope(HI) + envelope(b"{}", END), [Envelope(False, HI), Envelope(True, b"{}")]),
    "more behind the end": (envelope(b"{}", END) + envelope(HI) + b"junk", [Envelope(True, b"{}")]),
    "text and an oversize length": (envelope(HI) + bytes.fromhex("00ffffffff"), [Envelope(False, HI), None]),
    "an oversize length": (bytes.fromhex("00ffffffff"), [None]),
    "one byte over the limit": (b"\0" + (MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big"), [None]),
    "an oversize end": (bytes.fromhex("02ffffffff"), [None]),
    "an error document": (b'{"code":"x","message":"m"}', [None]),
    "a page": (b"<html>", [None]),
    "server-sent events": (b"data: {}\n\n", [None]),
    "text and an unknown flag": (envelope(HI) + envelope(HI, 4), [Envelope(False, HI), None]),
    "every unknown flag": (envelope(HI, 0x7C), [None]),
    "gzip that is none": (envelope(b"abc", COMPRESSED), [None]),
    "gzip that is cut": (envelope(gzip.compress(HI)[:-1], COMPRESSED), [None]),
    "gzip with a wrong checksum": (envelope(gzip.compress(HI)[:-8] + bytes(8), COMPRESSED), [None]),
    "gzip with more behind it": (envelope(gzip.compress(HI) + b"junk", COMPRESSED), [None]),
    "zlib in place of gzip": (envelope(zlib.compress(HI), COMPRESSED), [None]),
    "text between broken gzip": (
        envelope(HI) + envelope(b"abc", COMPRESSED) + envelope(HI),
        [Envelope(False, HI), None],
    ),
}


def envelopes_in(pieces: Iterable[bytes]) -> tuple[list[Envelope | None], bool]:
    """The envelopes, None for an error; and whether something is left."""
    decoder, found = EnvelopeDecoder(), list[Envelope | None]()
    for piece in pieces:
        try:
            found += decoder.feed(piece)
        except EnvelopeError:
            return [*found, None], decoder.pending
    try:
        decoder.feed(b"")  # what an error waits for that came behind whole envelopes
    except EnvelopeError:
        found.append(None)
    return found, decoder.pending


@rows("name", STREAMS)
def test_envelopes_are_the_same_in_any_pieces(name: str) -> None:
    stream, expected = STREAMS[name]
    cuts = [[stream], [stream[at : at + 1] for at in range(len(stream))]]
    cuts += [[stream[:at], stream[at:]] for at in range(len(stream))]
    cuts += [[stream[:3], stream[3:11], stream[11:]]]
    for pieces in cuts:
        assert envelopes_in(pieces) == (expected, None in expected)


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.booleans()), max_size=6),
    st.lists(st.integers(0, 300), max_size=12),
    st.binary(max_size=4),
)
def test_envelopes_are_the_same_cut_anywhere(payloads: list[tuple[bytes, bool]], cuts: list[int], rest: bytes) -> None:
    beginning = b"\0" + rest if rest else b""
    stream = b"".join(packed(one) if squeezed else envelope(one) for one, squeezed in payloads)
    stream += beginning[:4]
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:stop] for start, stop in pairwise(edges)]
    assert envelopes_in(pieces) == ([Envelope(False, one) for one, _ in payloads], bool(beginning))


@given(st.lists(st.binary(max_size=30), max_size=6))
def test_any_bytes_are_envelopes_or_an_error(pieces: list[bytes]) -> None:
    assert envelopes_in(pieces)[0] == envelopes_in([b"".join(pieces)])[0]


def test_the_beginning_of_an_envelope_is_pending() -> None:
    decoder = EnvelopeDecoder()
    assert not decoder.pending
    assert decoder.feed(envelope(HI) + bytes.fromhex("00000000080a06")) == [Envelope(False, HI)]
    assert decoder.pending
    assert decoder.feed(HI[2:]) == [Envelope(False, HI)]
    assert not decoder.pending


def test_a_field_that_is_cut_inside_a_whole_envelope_is_a_broken_message() -> None:
    (found,) = EnvelopeDecoder().feed(bytes.fromhex("00000000030a0541"))
    with pytest.raises(WireError):
        members("AgentServerMessage", found.payload)


def test_the_largest_payload_is_accepted() -> None:
    payload = bytes(MAX_PAYLOAD_BYTES)
    assert EnvelopeDecoder().feed(envelope(payload)) == [Envelope(False, payload)]


def zeros(size: int) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


def test_the_largest_content_is_accepted() -> None:
    noise = random.Random(0).randbytes(MAX_UNPACKED_BYTES // MAX_RATIO)
    content = noise + bytes(MAX_UNPACKED_BYTES - len(noise))
    (found,) = EnvelopeDecoder().feed(envelope(gzip.compress(content, 1), COMPRESSED))
    assert found.payload == content


def test_no_more_is_unpacked_at_once_than_was_asked_for() -> None:
    packed = envelope(gzip.compress(b"content"), COMPRESSED)
    decoder = EnvelopeDecoder()
    found = decoder.feed(envelope(b"plain") + 3 * packed, most_packed=2 * len(packed))
    assert [one.payload for one in found] == [b"plain", b"content", b"content"] and decoder.waits
    assert [one.payload for one in decoder.feed(b"")] == [b"content"] and not decoder.waits


@pytest.mark.parametrize("size", [UNPACKED_BYTES + (1 << 20), 3 * MAX_UNPACKED_BYTES])
def test_a_gzip_bomb_is_refused_in_bounded_memory(size: int) -> None:
    bomb = envelope(zeros(size), COMPRESSED)
    tracemalloc.start()
    try:
        with pytest.raises(EnvelopeError, match="unpacks to more than"):
            EnvelopeDecoder().feed(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2.5 * MAX_UNPACKED_BYTES
    finally:
        tracemalloc.stop()


def test_an_error_stays_one() -> None:
    decoder = EnvelopeDecoder()
    for piece in (bytes.fromhex("00ffffffff"), envelope(HI), b""):
        with pytest.raises(EnvelopeError):
            decoder.feed(piece)


def test_the_headers_of_every_call() -> None:
    assert call_headers("t", "cli-2026.10.01-e373342", "call", "run", "application/proto") == {
        "authorization": "Bearer t",
        "connect-protocol-version": "1",
        "content-type": "application/proto",
        "user-agent": "connect-es/1.6.1",
        "x-cursor-client-type": "cli",
        "x-cursor-client-version": "cli-2026.10.01-e373342",
        "x-ghost-mode": "true",
        "x-cursor-streaming": "true",
        "x-request-id": "call",
        "x-original-request-id": "run",
    }
