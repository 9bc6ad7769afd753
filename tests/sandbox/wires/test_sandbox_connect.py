"""The sandbox's own protobuf and envelopes, held against the vectors of the wire."""

import gzip
from typing import Any

import pytest

from proxy.sandbox.wires.connect.envelopes import END, GZIP, end_of_stream, envelope, read_envelopes
from proxy.sandbox.wires.connect.protobuf import Malformed, Message, write

#: What is meant, by field numbers, and its bytes.
WRITTEN: dict[str, tuple[dict[int, Any], str]] = {
    "request id": ({1: "req-1"}, "0a057265712d31"),
    "heartbeat of a client": ({7: {}}, "3a00"),
    "append 0": ({1: "3a00", 2: {1: "req-1"}}, "0a043361303012070a057265712d31"),
    "append 300": ({1: "aabb", 2: {1: "req-1"}, 3: 300}, "0a046161626212070a057265712d3118ac02"),
    "cancel": ({4: {3: {}}}, "22021a00"),
    "text": ({1: {1: {1: "Hi"}}}, "0a060a040a024869"),
    "thinking": ({1: {4: {1: "hm"}}}, "0a0622040a02686d"),
    "turn": ({1: {14: {1: 2116658, 2: 7, 3: 1976832, 4: 0}}}, "0a0f720d08b298810110071880d4782000"),
    "read": ({2: {1: 1, 7: {1: "/w/a.txt", 2: "t1"}, 15: "e1"}}, "121608013a0e0a082f772f612e747874120274317a026531"),
    "close of exec 0": ({5: {1: {}}}, "2a020a00"),
    "answer without an arm": ({6: {1: 11}}, "3202080b"),
    "list": ({10: {1: [b"\x01", b"\x02"]}}, "52060a01010a0102"),
    "double": ({2: 1.5}, "11000000000000f83f"),
    "negative": ({1: -1}, "08ffffffffffffffffff01"),
    "nothing": ({1: None}, ""),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name: str) -> None:
    fields, data = WRITTEN[name]
    assert write(fields).hex() == data
    Message(bytes.fromhex(data))


def test_read_by_the_way_of_numbers() -> None:
    run = Message(
        bytes.fromhex(
            "0a410a0012100a0e0a0c0a02686912026d311a00200122002a0263314a1d0a0c636f6d706f7365722d322e35"
            "1a0d0a0466617374120566616c73658201026331980101"
        )
    )
    assert (run.text(1, 2, 1, 1, 1), run.text(1, 5), run.number(1, 2, 1, 1, 4)) == ("hi", "c1", 1)
    assert run.has(1, 1) and run.has(1, 4) and not run.has(1, 12)
    assert [(one.text(1), one.text(2)) for one in run.all(1, 9, 3)] == [("fast", "false")]
    assert run.sub(2) is None and run.number(1, 1, 1) == 0 and run.text(9) == ""


@pytest.mark.parametrize("data", ["0a0541", "0a", "08", "ff" * 11, "00", "03", "0b"])
def test_what_is_no_message(data: str) -> None:
    with pytest.raises(Malformed):
        Message(bytes.fromhex(data))


def test_envelopes() -> None:
    assert envelope(b"abc").hex() == "0000000003616263"
    assert envelope(write({1: "req-1"})).hex() == "00000000070a057265712d31"
    assert end_of_stream({}).hex() == "02000000027b7d"
    assert read_envelopes(envelope(b"a") + envelope(b"", END)) == [(0, b"a"), (END, b"")]
    [(flags, payload)] = read_envelopes(envelope(b"abc", compressed=True))
    assert (flags, gzip.decompress(payload)) == (GZIP, b"abc")
    [(flags, _)] = read_envelopes(end_of_stream({"error": {"code": "x"}}, compressed=True))
    assert flags == GZIP | END
    for data in (b"\x00", b"\x00\x00\x00\x00\x05ab"):
        with pytest.raises(ValueError, match="protocol error"):
            read_envelopes(data)
