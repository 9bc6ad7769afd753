"""What holds for every message and any bytes."""

from __future__ import annotations

import time
from typing import Any

import p5_toy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from p5_values import CHANGES, damaged, value_of
from samples import examples, rows

from proxy.providers.p5_cursor.wire import protobuf
from proxy.providers.p5_cursor.wire.protobuf import WireError
from proxy.providers.p5_cursor.wire.scalars import varint
from proxy.providers.p5_cursor.wire.schema import AGENT

OFTEN = settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))

PAYLOAD = "AgentServerMessage"
UNKNOWN = [varint(99_999 << 3 | wire) + rest for wire, rest in enumerate((b"\x07", b"12345678", b"\x03abc"))]
UNKNOWN += [varint(99_999 << 3 | 5) + b"1234"]


@OFTEN
@given(value_of(AGENT, PAYLOAD), st.lists(st.sampled_from(UNKNOWN), max_size=4), st.lists(st.sampled_from(UNKNOWN)))
def test_unknown_fields_make_no_difference(value: Any, before: list[bytes], behind: list[bytes]) -> None:
    written = protobuf.encode(PAYLOAD, value)
    more = b"".join((*before, written, *behind))
    assert protobuf.decode(PAYLOAD, more) == value
    assert protobuf.members(PAYLOAD, more) == protobuf.members(PAYLOAD, written)


@OFTEN
@given(st.lists(value_of(AGENT, PAYLOAD), max_size=4))
def test_members_are_those_of_each_message_in_order(values: list[dict[str, Any]]) -> None:
    written = [protobuf.encode(PAYLOAD, value) for value in values]
    together = protobuf.members(PAYLOAD, b"".join(written))
    assert together == [member for one in written for member in protobuf.members(PAYLOAD, one)]
    assert [name for name, _ in together] == [name for value in values for name in value]


def read_or_refused(read: Any, message: str, data: bytes) -> None:
    try:
        read(message, data)
    except WireError:
        pass


@OFTEN
@given(st.sampled_from(AGENT.messages), st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(message: str, data: bytes) -> None:
    read_or_refused(protobuf.decode, message, data)
    read_or_refused(protobuf.members, message, data)
    read_or_refused(p5_toy.decode, "Toy", data)


@OFTEN
@given(value_of(AGENT, PAYLOAD), CHANGES)
def test_damaged_payloads_are_read_or_refused(value: Any, changes: Any) -> None:
    data = damaged(protobuf.encode(PAYLOAD, value), changes)
    read_or_refused(protobuf.decode, PAYLOAD, data)
    read_or_refused(protobuf.members, PAYLOAD, data)


@OFTEN
@given(value_of(AGENT, PAYLOAD))
def test_a_payload_that_is_cut_is_shorter_or_refused(value: Any) -> None:
    data = protobuf.encode(PAYLOAD, value)
    whole = [name for name, _ in protobuf.members(PAYLOAD, data)]
    for at in range(len(data)):
        try:
            names = [name for name, _ in protobuf.members(PAYLOAD, data[:at])]
        except WireError:
            continue
        assert names == whole[: len(names)] != whole


def seconds(data: bytes) -> float:
    times = []
    for _ in range(3):
        begin = time.process_time()
        read_or_refused(protobuf.decode, PAYLOAD, data)
        read_or_refused(protobuf.members, PAYLOAD, data)
        times.append(time.process_time() - begin)
    return min(times)


MIB = 1 << 20
#: Large payloads that a reader could lose its time with.
HOSTILE = {
    "bytes that are all tags": b"\x0a" * 16 * MIB,
    "numbers that do not end": b"\xff" * 16 * MIB,
    "empty updates": b"\x0a\x00" * 8 * MIB,
    "unknown numbers": b"\xf8\x06\x01" * 5 * MIB,
    "a large text": protobuf.encode(PAYLOAD, {"interaction_update": {"text_delta": {"text": "é" * 6 * MIB}}}),
    "a large file": protobuf.encode(PAYLOAD, {"exec_server_message": {"write_args": {"file_text": "a" * 12 * MIB}}}),
    "a large blob": protobuf.encode(PAYLOAD, {"kv_server_message": {"set_blob_args": {"blob_data": bytes(12 * MIB)}}}),
    "a large display record": b"\x0a" + varint(12 * MIB + 5) + b"\x12" + varint(12 * MIB) + bytes(12 * MIB),
}


@rows("name", HOSTILE)
def test_no_payload_takes_long(name: str) -> None:
    assert seconds(HOSTILE[name]) < 1
