"""Reads messages from bytes.

An unknown field is skipped by its wire type, and so is a known one of another wire type. Sub-messages are read in
place: positions are passed down, not copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from proxy.providers.p5_cursor.wire.scalars import (
    LENGTH,
    MAX_DEPTH,
    READ,
    SCALARS,
    VARINT,
    Scalar,
    WireError,
    read_varint,
)
from proxy.providers.p5_cursor.wire.schema import Field, Schema

#: Fields of one payload, unknown ones included: two bytes each would be enough to fill the memory.
MAX_FIELDS = 20_000
_MAX_TAG = 0xFFFF_FFFF
_TOO_MANY = f"more than {MAX_FIELDS} fields"
_GROUP = 1 << 62  # fits in no message
#: Bytes after a tag, by wire type; -1 when a number comes first. Groups and unknown types are refused.
_SIZES = (-1, 8, -1, _GROUP, _GROUP, 4, _GROUP, _GROUP)

#: Members for display or storage only, which may be large.
UNREAD = frozenset(
    {
        *("conversation_checkpoint_update", "user_message_appended", "shell_output_delta"),
        *("tool_call_started", "tool_call_completed", "partial_tool_call", "tool_call_delta"),
        *("post_request_prompt", "active_branch_change", "feedback_request"),
    }
)
#: The message whose members are listed one by one.
_SPLIT = "InteractionUpdate"


class Reader:
    """One payload."""

    __slots__ = ("_left", "data", "rows")

    def __init__(self, rows: Rows, data: bytes) -> None:
        self.rows = rows
        self.data = data
        self._left = MAX_FIELDS

    def message(self, message: str, at: int, end: int, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise WireError(f"messages in one another deeper than {MAX_DEPTH}")
        rows = self.rows(message)
        result: dict[str, Any] = {}
        arm = ""
        for tag, start, stop in self._fields(at, end):
            row = rows.get(tag)
            if row is None:
                continue
            if row.oneof:
                if arm and arm != row.name:
                    del result[arm]  # the last member of a oneof counts
                arm = row.name
            row.put(result, row.name, row.value(self, start, stop, depth))
        return result

    def members(self, message: str, at: int, end: int) -> list[tuple[str, Any]]:
        rows = self.rows(message)
        found: list[tuple[str, Any]] = []
        for tag, start, stop in self._fields(at, end):
            row = rows.get(tag)
            if row is not None:
                found.append((row.name, row.member(self, start, stop, 1)))
        return found

    def _fields(self, at: int, end: int) -> list[tuple[int, int, int]]:
        """Yields for each field its tag, then the number of a varint or the start of its content, and the end.

        A list, and one-byte numbers without a call: this runs three times for each piece of text."""
        data, left = self.data, self._left
        found: list[tuple[int, int, int]] = []
        while at < end:
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = read_varint(data, at - 1, end)
            if tag < 0x08 or tag > _MAX_TAG:
                raise WireError("not a field number")
            left -= 1
            if left < 0:
                raise WireError(_TOO_MANY)
            wire = tag & 0x07
            size = _SIZES[wire]
            if size < 0:
                if at < end and data[at] < 0x80:
                    size = data[at]
                    at += 1
                else:
                    size, at = read_varint(data, at, end)
                if wire == VARINT:
                    found.append((tag, size, at))
                    continue
            start = at
            at += size
            if at > end:
                raise WireError("a field that ends after its message, or a group")
            found.append((tag, start, at))
        self._left = left
        return found

    def count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise WireError(_TOO_MANY)

    def packed(self, scalar: Scalar, start: int, stop: int) -> list[Any]:
        found = []
        while start < stop:
            self.count()
            if scalar.wire == VARINT:
                raw, start = read_varint(self.data, start, stop)
                found.append(scalar.read(raw))
                continue
            start += 8
            if start > stop:
                raise WireError("packed values that end in the middle of one")
            found.append(scalar.read(self.data[start - 8 : start]))
        return found


Rows = Callable[[str], "dict[int, Row]"]
_Value = Callable[[Reader, int, int, int], Any]
_Put = Callable[[dict[str, Any], str, Any], None]


@dataclass(frozen=True, slots=True)
class Row:
    """The rules to read a field of one wire type."""

    name: str
    oneof: bool
    value: _Value
    #: How to read it among the members of a payload.
    member: _Value
    put: _Put


def rows_of(schema: Schema, message: str) -> dict[int, Row]:
    """tag -> how to read it, for all fields of a message."""
    return {tag: row for field in schema.fields(message) for tag, row in _rows(schema, field)}


def _rows(schema: Schema, field: Field) -> Iterator[tuple[int, Row]]:
    wire, value = _value(schema, field)
    put = _enter if field.is_map else _append if field.repeated else dict.__setitem__
    member = _unread if field.name in UNREAD else _split if field.type == _SPLIT else value
    yield field.number << 3 | wire, Row(field.name, field.oneof, value, member, put)
    if field.repeated and wire != LENGTH:
        scalar = SCALARS[field.type]
        yield field.number << 3 | LENGTH, Row(field.name, field.oneof, _packed(scalar), _packed(scalar), _extend)


def _value(schema: Schema, field: Field) -> tuple[int, _Value]:
    if field.is_map:
        return LENGTH, _entry(schema, field.type)
    if not field.is_scalar:
        return LENGTH, _message(field.type)
    read = SCALARS[field.type].read
    if SCALARS[field.type].wire == VARINT:
        return VARINT, lambda _reader, start, _stop, _depth: read(start)
    return SCALARS[field.type].wire, lambda reader, start, stop, _depth: read(reader.data[start:stop])


def _message(message: str) -> _Value:
    finish = READ.get(message)
    if finish is None:
        return lambda reader, start, stop, depth: reader.message(message, start, stop, depth + 1)
    return lambda reader, start, stop, depth: finish(reader.message(message, start, stop, depth + 1))


def _entry(schema: Schema, kind: str) -> _Value:
    key, value = (_default_of(field.type) for field in schema.fields(kind))

    def entry(reader: Reader, start: int, stop: int, depth: int) -> tuple[Any, Any]:
        read = {"key": key(), "value": value(), **reader.message(kind, start, stop, depth + 1)}
        return read["key"], read["value"]

    return entry


def _default_of(kind: str) -> Callable[[], Any]:
    """The default of an entry's missing key or value; a message is new each time."""
    if kind in SCALARS:
        return lambda: SCALARS[kind].default
    finish = READ.get(kind)
    return dict if finish is None else lambda: finish({})


def _packed(scalar: Scalar) -> _Value:
    return lambda reader, start, stop, _depth: reader.packed(scalar, start, stop)


def _unread(_reader: Reader, _start: int, _stop: int, _depth: int) -> Any:
    return {}


def _split(reader: Reader, start: int, stop: int, _depth: int) -> Any:
    return reader.members(_SPLIT, start, stop)


def _append(result: dict[str, Any], name: str, value: Any) -> None:
    result.setdefault(name, []).append(value)


def _extend(result: dict[str, Any], name: str, values: Any) -> None:
    result.setdefault(name, []).extend(values)


def _enter(result: dict[str, Any], name: str, entry: Any) -> None:
    result.setdefault(name, {})[entry[0]] = entry[1]
