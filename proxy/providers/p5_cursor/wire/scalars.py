"""Reads and writes scalar values of protobuf and the numbers below them. Converts JSON values in messages, between
`Value`, `Struct`, `ListValue` and plain JSON.

JSON is converted one level at a time: the codec makes a call for each nested message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

#: Nested messages, for reading and writing.
MAX_DEPTH = 64
MAX_VARINT_BYTES = 10
_64_BITS = (1 << 64) - 1
_DOUBLE = struct.Struct("<d")


class WireError(ValueError):
    """Bytes that are not a message, or a value that its field cannot hold. The text has no content."""


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at `at`, 64 bits without sign, and its end."""
    value = shift = 0
    stop = min(end, at + MAX_VARINT_BYTES)
    while at < stop:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _64_BITS, at
        shift += 7
    raise WireError("a number that does not end")


def varint(value: int) -> bytes:
    """A number as a varint; negative ones have 10 bytes."""
    value &= _64_BITS
    if value < 0x80:
        return bytes((value,))
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type. `read` gets the number of a varint, else the bytes; `write` raises WireError."""

    wire: int
    default: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], bytes]


def _signed(bits: int) -> Callable[[int], int]:
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    return lambda raw: ((raw & mask) ^ half) - half


def _integer(low: int, high: int) -> Callable[[Any], bytes]:
    def write(value: Any) -> bytes:
        if not isinstance(value, int) or not low <= value <= high:
            raise WireError(f"not an integer from {low} to {high}")
        return varint(value)

    return write


def _write_bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise WireError("not true or false")
    return b"\x01" if value else b"\x00"


def _write_double(value: Any) -> bytes:
    try:
        return _DOUBLE.pack(value)
    except (struct.error, OverflowError) as error:
        raise WireError("not a number that a double holds") from error


def _write_string(value: Any) -> bytes:
    if not isinstance(value, str):
        raise WireError("not a string")
    try:
        return value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 cannot encode
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _write_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise WireError("not bytes")
    return bytes(value)


def _signed_type(bits: int) -> Scalar:
    half = 1 << (bits - 1)
    return Scalar(VARINT, 0, _signed(bits), _integer(-half, half - 1))


def _unsigned_type(bits: int) -> Scalar:
    mask = (1 << bits) - 1
    return Scalar(VARINT, 0, lambda raw: raw & mask, _integer(0, mask))


SCALARS = {
    "bool": Scalar(VARINT, False, bool, _write_bool),
    "enum": _signed_type(32),
    "int32": _signed_type(32),
    "int64": _signed_type(64),
    "uint32": _unsigned_type(32),
    "uint64": _unsigned_type(64),
    "double": Scalar(FIXED64, 0.0, lambda raw: _DOUBLE.unpack(raw)[0], _write_double),
    "string": Scalar(LENGTH, "", lambda raw: str(raw, "utf-8", "replace"), _write_string),
    "bytes": Scalar(LENGTH, b"", bytes, _write_bytes),
}


#: Up to here every integer is a double, and every such double an integer.
_EXACT = 1 << 53


def _number(value: float) -> int | float:
    return int(value) if abs(value) <= _EXACT and value.is_integer() else value


def _json_of(value: Mapping[str, Any]) -> Any:
    for member, content in value.items():
        if member == "number_value":
            return _number(content)
        return None if member == "null_value" else content
    return None  # older clients write null like this


def _value_of(content: Any) -> dict[str, Any]:
    if content is None:
        return {"null_value": 0}
    for kinds, member in _MEMBERS:
        if isinstance(content, kinds):
            return {member: content}
    raise WireError("not a JSON value")


_MEMBERS: tuple[tuple[Any, str], ...] = (
    (bool, "bool_value"),  # before numbers: a bool is an int
    ((int, float), "number_value"),
    (str, "string_value"),
    (Mapping, "struct_value"),
    ((list, tuple), "list_value"),
)

#: message -> JSON value of its fields.
READ: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "Value": _json_of,
    "Struct": lambda read: read.get("fields", {}),
    "ListValue": lambda read: read.get("values", []),
}
#: message -> fields to write for a JSON value.
WRITTEN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "Value": _value_of,
    "Struct": lambda content: {"fields": content},
    "ListValue": lambda content: {"values": content},
}
