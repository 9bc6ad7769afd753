"""Protobuf without a schema: messages are written from field numbers, and read by paths of numbers to a field."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: Wire types. Groups (3 and 4) are obsolete.
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

_FIXED = {FIXED64: 8, FIXED32: 4}

_MAX_VARINT_BYTES = 10


class Malformed(ValueError):
    """Bytes that are not a message."""


def varint(number: int) -> bytes:
    """A number as a varint; negative ones take ten bytes."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def write(fields: Mapping[int, Any]) -> bytes:
    """The fields in the given order: ints and bools as varints, floats as doubles, dicts as messages, list elements one
    by one. None is left out; a default is written, since the caller knows whether it is wanted.

    >>> write({1: {1: {1: "Hi"}}}).hex()
    '0a060a040a024869'
    """
    out = bytearray()
    for number, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                out += _field(number, one)
    return bytes(out)


def _field(number: int, value: Any) -> bytes:
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | FIXED64) + struct.pack("<d", value)
    data = write(value) if isinstance(value, Mapping) else value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | LENGTH) + varint(len(data)) + data


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """The number at `place`, and its end."""
    number = 0
    for count in range(_MAX_VARINT_BYTES):
        if place + count >= len(data):
            raise Malformed("a varint ends early")
        byte = data[place + count]
        number |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return number & (1 << 64) - 1, place + count + 1
    raise Malformed("a varint of more than ten bytes")


def fields_of(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and raw value of each field, in the order of the wire. Raises Malformed."""
    place = 0
    while place < len(data):
        key, place = read_varint(data, place)
        number, kind = key >> 3, key & 7
        if not number:
            raise Malformed("illegal tag: field no 0")
        if kind == VARINT:
            value, place = read_varint(data, place)
            yield number, kind, value
            continue
        size = _FIXED.get(kind)
        if kind == LENGTH:
            size, place = read_varint(data, place)
        if size is None:
            raise Malformed(f"invalid wire type {kind}")
        if place + size > len(data):
            raise Malformed("a field ends early")
        yield number, kind, data[place : place + size]
        place += size


class Message:
    """A received message. A path such as `(2, 1, 4)` leads through messages to a field, of which the last one counts.

    >>> Message(bytes.fromhex("0a060a040a024869")).text(1, 1, 1)
    'Hi'
    """

    def __init__(self, data: bytes) -> None:
        """Parses the first level. Raises Malformed, as the other methods do for deeper levels."""
        self.data = data
        self.fields: dict[int, list[int | bytes]] = {}
        self.numbers: list[tuple[int, int]] = []  # number and wire type of each field, in the order of the wire
        for number, kind, value in fields_of(data):
            self.fields.setdefault(number, []).append(value)
            self.numbers.append((number, kind))

    def __contains__(self, number: int) -> bool:
        return number in self.fields

    def _last(self, way: Sequence[int]) -> int | bytes | None:
        *outer, number = way
        message = self.sub(*outer) if outer else self
        return message.fields[number][-1] if message is not None and number in message.fields else None

    def sub(self, *way: int) -> Message | None:
        """The message at a path; None when there is none."""
        found = self._last(way)
        return Message(found) if isinstance(found, bytes) else None

    def all(self, *way: int) -> list[Message]:
        """The elements of a repeated message."""
        *outer, number = way
        message = self.sub(*outer) if outer else self
        found = message.fields.get(number, []) if message is not None else []
        return [Message(one) for one in found if isinstance(one, bytes)]

    def has(self, *way: int) -> bool:
        return self._last(way) is not None

    def bytes(self, *way: int) -> bytes:
        found = self._last(way)
        return found if isinstance(found, bytes) else b""

    def text(self, *way: int) -> str:
        return self.bytes(*way).decode(errors="replace")

    def number(self, *way: int) -> int:
        found = self._last(way)
        return found if isinstance(found, int) else 0
