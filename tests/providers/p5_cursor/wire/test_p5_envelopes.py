"""Envelopes out of pieces: whole, byte by byte, in two."""

from __future__ import annotations

import gzip

import pytest

from proxy.providers.p5_cursor.wire import envelopes
from proxy.providers.p5_cursor.wire.envelopes import Envelope, EnvelopeDecoder, EnvelopeError, envelope

HI = bytes.fromhex("0a060a040a024869")
HEARTBEAT = bytes.fromhex("0a026a00")


@pytest.mark.parametrize(
    ("payload", "flags", "written"),
    [
        ("616263", 0, "0000000003616263"),
        ("78797a", 1, "010000000378797a"),
        ("0a057265712d31", 0, "00000000070a057265712d31"),
    ],
)
def test_a_payload_stands_behind_its_header(payload: str, flags: int, written: str) -> None:
    assert envelope(bytes.fromhex(payload), flags).hex() == written


STREAMS: dict[str, tuple[str, list[Envelope]]] = {
    "text": ("00000000080a060a040a024869", [Envelope(False, HI)]),
    "text in gzip": (
        "010000001c1f8b0800000000000203e362e362e162f2c80400c65bdea308000000",
        [Envelope(False, HI)],
    ),
    "end": ("02000000027b7d", [Envelope(True, b"{}")]),
    "end without payload": ("0200000000", [Envelope(True, b"")]),
    "heartbeat and text": (
        "00000000040a026a0000000000080a060a040a024869",
        [Envelope(False, HEARTBEAT), Envelope(False, HI)],
    ),
    "end in gzip": (envelope(gzip.compress(b"{}"), 3).hex(), [Envelope(True, b"{}")]),
    "trailers of grpc-web": (envelope(b"grpc-status: 0\r\n", 0x80).hex(), [Envelope(True, b"grpc-status: 0\r\n")]),
    "nothing": ("", []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_envelopes_are_the_same_in_any_pieces(name: str) -> None:
    stream, expected = bytes.fromhex(STREAMS[name][0]), STREAMS[name][1]
    cuts = [[stream], [stream[at : at + 1] for at in range(len(stream))]]
    cuts += [[stream[:at], stream[at:]] for at in range(len(stream))]
    for pieces in cuts:
        decoder = EnvelopeDecoder()
        assert [found for piece in pieces for found in decoder.feed(piece)] == expected
        assert not decoder.pending


def test_the_beginning_of_an_envelope_is_pending() -> None:
    decoder = EnvelopeDecoder()
    assert decoder.feed(envelope(HI) + bytes.fromhex("00000000080a06")) == [Envelope(False, HI)]
    assert decoder.pending


def test_a_length_beyond_the_limit_is_refused_at_its_header() -> None:
    with pytest.raises(EnvelopeError):
        EnvelopeDecoder().feed(bytes.fromhex("00ffffffff"))
    over = (envelopes.MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big")
    with pytest.raises(EnvelopeError):
        EnvelopeDecoder().feed(b"\0" + over)
