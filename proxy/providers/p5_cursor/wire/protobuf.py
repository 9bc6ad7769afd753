"""Converts messages of the agent service between bytes and dicts: `encode`, `decode` and `members`.

A message is a dict with the names of its table; members of a oneof are ordinary members. Bytes and unread messages are
`bytes`, enums numbers, `Value` and `Struct` the JSON that they carry. A missing member is absent from the dict.
Messages are written in one form: ascending numbers, defaults left out where they mean absence, numbers packed. All
three raise WireError, and KeyError for a message that is in no table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from proxy.providers.p5_cursor.wire import reading
from proxy.providers.p5_cursor.wire.reading import Reader
from proxy.providers.p5_cursor.wire.scalars import LENGTH, MAX_DEPTH, READ, SCALARS, WRITTEN, Scalar, WireError, varint
from proxy.providers.p5_cursor.wire.schema import AGENT, Field, Schema


class Writer:
    """One payload, in pieces that are joined once."""

    __slots__ = ("pieces", "rows")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.pieces: list[bytes] = []

    def message(self, message: str, value: Any, depth: int) -> int:
        """Writes the fields of a message; returns their size."""
        if depth > MAX_DEPTH:
            raise WireError(f"messages in one another deeper than {MAX_DEPTH}")
        if not isinstance(value, Mapping):
            raise WireError(f"{message} is not an object")
        rows = self.rows(message)
        if unknown := value.keys() - rows.keys():
            raise WireError(f"{message} has no {', '.join(sorted(map(str, unknown)))}")
        present = sorted((rows[name] for name in value), key=lambda row: row.number)
        if sum(row.oneof for row in present) > 1:
            raise WireError(f"{message} holds one of {', '.join(row.name for row in present if row.oneof)}")
        size = 0
        for row in present:
            try:
                size += row.write(self, value[row.name], depth)
            except WireError as error:
                raise WireError(f"{message}.{row.name}: {error}") from None
        return size

    def put(self, piece: bytes) -> int:
        self.pieces.append(piece)
        return len(piece)

    def framed(self, key: bytes, message: str, value: Any, depth: int) -> int:
        """Writes a message after its key and size; returns the size of all."""
        place = len(self.pieces)
        self.pieces.append(b"")
        size = self.message(message, value, depth)
        head = key + varint(size)
        self.pieces[place] = head
        return len(head) + size


Rows = Callable[[str], "dict[str, OutRow]"]
_Write = Callable[[Writer, Any, int], int]


@dataclass(frozen=True, slots=True)
class OutRow:
    """The rules to write one field."""

    number: int
    name: str
    oneof: bool
    write: _Write


def out_rows_of(schema: Schema, message: str) -> dict[str, OutRow]:
    """name -> how to write it, for all fields of a message."""
    return {
        field.name: OutRow(field.number, field.name, field.oneof, _write(field)) for field in schema.fields(message)
    }


def _write(field: Field) -> _Write:
    key = varint(field.number << 3 | (LENGTH if field.repeated or not field.is_scalar else SCALARS[field.type].wire))
    if field.is_map:
        return _entries(key, field.type)
    if not field.is_scalar:
        return _each(_message(key, field.type)) if field.repeated else _message(key, field.type)
    scalar = SCALARS[field.type]
    if field.repeated:
        return _each(_scalar(key, scalar)) if scalar.wire == LENGTH else _packed(key, scalar)
    return _scalar(key, scalar) if field.explicit else _unless_default(_scalar(key, scalar), scalar.default)


def _scalar(key: bytes, scalar: Scalar) -> _Write:
    def write(writer: Writer, value: Any, _depth: int) -> int:
        content = scalar.write(value)
        head = key + varint(len(content)) if scalar.wire == LENGTH else key
        return writer.put(head) + writer.put(content)

    return write


def _unless_default(write: _Write, default: Any) -> _Write:
    return lambda writer, value, depth: 0 if value == default else write(writer, value, depth)


def _message(key: bytes, message: str) -> _Write:
    prepared: Callable[[Any], Any] = WRITTEN.get(message, _as_it_is)
    return lambda writer, value, depth: writer.framed(key, message, prepared(value), depth + 1)


def _as_it_is(value: Any) -> Any:
    return value


def _each(write: _Write) -> _Write:
    return lambda writer, values, depth: sum(write(writer, value, depth) for value in _list(values))


def _packed(key: bytes, scalar: Scalar) -> _Write:
    def write(writer: Writer, values: Any, _depth: int) -> int:
        content = b"".join(map(scalar.write, _list(values)))
        return writer.put(key + varint(len(content)) + content) if content else 0

    return write


def _entries(key: bytes, kind: str) -> _Write:
    entry = _message(key, kind)

    def write(writer: Writer, values: Any, depth: int) -> int:
        if not isinstance(values, Mapping):
            raise WireError("not an object")
        return sum(entry(writer, {"key": name, "value": value}, depth) for name, value in values.items())

    return write


def _list(values: Any) -> Sequence[Any]:
    if not isinstance(values, list | tuple):
        raise WireError("not a list")
    return values


__all__ = ["Codec", "WireError", "decode", "encode", "members"]


class Codec:
    """The messages of one schema; each is prepared when first used."""

    def __init__(self, schema: Schema) -> None:
        self._read_rows = cache(partial(reading.rows_of, schema))
        self._write_rows = cache(partial(out_rows_of, schema))

    def encode(self, message: str, value: Mapping[str, Any]) -> bytes:
        """Writes fields in ascending order of numbers, so that equal values are equal bytes. Raises WireError for an
        unknown member, two of one oneof, and a value that its field cannot hold."""
        writer = Writer(self._write_rows)
        writer.message(message, WRITTEN[message](value) if message in WRITTEN else value, 1)
        return b"".join(writer.pieces)

    def decode(self, message: str, data: bytes) -> Any:
        """Reads a dict; for `Value` and the like its JSON. The last of several values of a member counts, and the last
        member of a oneof. Unknown fields are left out."""
        value = Reader(self._read_rows, data).message(message, 0, len(data), 1)
        return READ[message](value) if message in READ else value

    def members(self, message: str, data: bytes) -> list[tuple[str, Any]]:
        """Every member in the order of the bytes, repeated ones and all of a oneof, as (name, value).

        The value of `interaction_update` is such a list itself. A member in `reading.UNREAD` has the value `{}`: the
        answer does not depend on it, and it may be large."""
        return Reader(self._read_rows, data).members(message, 0, len(data))


_AGENT = Codec(AGENT)
encode, decode, members = _AGENT.encode, _AGENT.decode, _AGENT.members
