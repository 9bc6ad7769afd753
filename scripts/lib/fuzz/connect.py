"""Mutations of Connect streams: of their frames, and of the protobuf messages inside, whose schema is not known."""

from __future__ import annotations

import base64
import copy
import gzip
import json
from collections.abc import Callable
from random import Random
from typing import Any

from fuzz.mutation import TEXTS, dumped, mutate, mutate_bytes
from proxy.sandbox.wires.connect.protobuf import FIXED32, FIXED64, LENGTH, VARINT, Malformed, fields_of, varint

#: [number, wire type, value]; the value of a message is a list of such fields.
Field = list[Any]

_NUMBERS = (0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
_FIELD_NUMBERS = (0, *range(1, 21), 2**28, 2**29 - 1, 2**29)
_DEPTHS = (3, 40, 300, 3000)
#: A varint without end, one of eleven bytes, a field longer than what follows, a group, a field number of zero.
_ODD_FIELDS = (
    b"\x08" + b"\xff" * 12,
    b"\x08" + b"\x80" * 10 + b"\x01",
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\x0b\x0c",
    b"\x02",
)
_FLAGS = (0, 1, 2, 3, 4, 0x80, 0x81, 0xFF)
_SIZES = (0, 1, 2**24, 2**24 + 1, 2**31, 2**32 - 1)
_ENDS: tuple[Any, ...] = (
    {},
    {"metadata": {"a": ["b"]}},
    {"error": {"code": "resource_exhausted", "message": "busy", "details": [{"type": "a", "value": "b", "debug": {}}]}},
    {"error": {"code": "unauthenticated", "message": "no"}},
    {"error": {"code": 7}},
)


def fields_in(data: bytes, depth: int = 12) -> list[Field]:
    """A message and those inside, so deep. Raises Malformed."""
    fields = fields_of(data)
    return [[number, kind, _inner(value, depth) if kind == LENGTH else value] for number, kind, value in fields]


def _inner(data: Any, depth: int) -> Any:
    if not data or not depth or (data.isascii() and data.decode().isprintable()):
        return data
    try:
        return fields_in(data, depth - 1)
    except Malformed:
        return data


def written(fields: list[Field]) -> bytes:
    """The bytes of a message; a field of wire type -1 is its bytes."""
    return b"".join(_written(number, kind, value) for number, kind, value in fields)


def _written(number: int, kind: int, value: Any) -> bytes:
    if kind == -1:
        return bytes(value)
    key = varint(number << 3 | kind)
    if kind == VARINT:
        return key + varint(value)
    data = written(value) if isinstance(value, list) else bytes(value)
    return key + (varint(len(data)) if kind == LENGTH else b"") + data


def _lists_of(fields: list[Field]) -> list[list[Field]]:
    """The message and all inside, those that are empty left out."""
    found, out = [fields], []
    while found:
        one = found.pop()
        out += [one] if one else []
        found += [field[2] for field in one if isinstance(field[2], list)]
    return out


def _replace(message: list[Field], at: int, _all: list[list[Field]], rng: Random) -> None:
    number = message[at][0]
    values: tuple[tuple[int, Any], ...] = (
        (VARINT, rng.choice(_NUMBERS)),
        (LENGTH, rng.choice(TEXTS).encode("utf-8", "surrogatepass")),
        (LENGTH, rng.randbytes(rng.choice((1, 4, 60)))),
        (LENGTH, []),
        (FIXED64, rng.randbytes(8)),
        (FIXED32, rng.randbytes(4)),
        (-1, rng.choice(_ODD_FIELDS)),
    )
    message[at] = [number, *rng.choice(values)]


def _renumber(message: list[Field], at: int, _all: list[list[Field]], rng: Random) -> None:
    message[at][0] = rng.choice(_FIELD_NUMBERS)


def _delete(message: list[Field], at: int, _all: list[list[Field]], _rng: Random) -> None:
    del message[at]


def _repeat(message: list[Field], at: int, _all: list[list[Field]], rng: Random) -> None:
    message[at:at] = [copy.deepcopy(message[at]) for _ in range(rng.choice((1, 2, 200)))]


def _nest(message: list[Field], at: int, _all: list[list[Field]], rng: Random) -> None:
    number, data = rng.choice((message[at][0], *_FIELD_NUMBERS[1:6])), written([message[at]])
    for _ in range(rng.choice(_DEPTHS)):
        data = _written(number, LENGTH, data)
    message[at] = [number, -1, data]


def _copy_from(message: list[Field], at: int, everything: list[list[Field]], rng: Random) -> None:
    message[at] = [message[at][0], *copy.deepcopy(rng.choice(rng.choice(everything))[1:])]


def _swap(message: list[Field], at: int, _all: list[list[Field]], rng: Random) -> None:
    other = rng.randrange(len(message))
    message[at], message[other] = message[other], message[at]


_Change = Callable[[list[Field], int, list[list[Field]], Random], None]
_CHANGES: tuple[_Change, ...] = (_replace, _replace, _replace, _renumber, _delete, _repeat, _nest, _copy_from, _swap)


def mutate_message(data: bytes, rng: Random) -> bytes:
    try:
        fields = fields_in(data)
    except Malformed:
        return mutate_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 2, 4))):
        lists = _lists_of(fields)
        if not lists:
            break
        message = rng.choice(lists)
        rng.choice(_CHANGES)(message, rng.randrange(len(message)), lists, rng)
    raw = written(fields)
    return mutate_bytes(raw, rng) if rng.random() < 0.1 else raw


def envelope(payload: bytes, flags: int = 0) -> bytes:
    return bytes((flags,)) + len(payload).to_bytes(4, "big") + payload


def _changed(frame: bytes, rng: Random) -> bytes:
    return envelope(mutate_message(frame[5:], rng), frame[0])


def _packed(frame: bytes, rng: Random) -> bytes:
    packed = gzip.compress(frame[5:], mtime=0)
    odd = (packed, packed[:-3], packed + packed, packed + b"x", frame[5:], gzip.compress(b"\n" * 300_000, mtime=0))
    return envelope(rng.choice(odd), 1)


def _lying(frame: bytes, rng: Random) -> bytes:
    head = rng.choice((frame[:1], bytes((rng.choice(_FLAGS),))))
    size = frame[1:5] if head != frame[:1] else rng.choice(_SIZES).to_bytes(4, "big")
    return head + size + frame[5:]


def _ending(_frame: bytes, rng: Random) -> bytes:
    value = copy.deepcopy(rng.choice(_ENDS))
    return envelope(dumped(mutate(value, rng) if rng.random() < 0.7 else value), rng.choice((2, 2, 2, 3, 0x80)))


_FRAMES = (_changed, _changed, _changed, _changed, _packed, _lying, _ending)


def mutate_connect(frames: list[str], rng: Random) -> list[str]:
    """One change of a stream whose frames are base64."""
    raw = [base64.b64decode(one) for one in frames]
    at, other = rng.randrange(len(raw)), rng.randrange(len(raw))
    kind = rng.random()
    if kind < 0.65:
        raw[at] = rng.choice(_FRAMES)(raw[at], rng)
    elif kind < 0.73:
        del raw[at]
    elif kind < 0.81:
        raw[other:other] = [raw[at]] * rng.choice((1, 1, 20))
    elif kind < 0.89:
        raw[at], raw[other] = raw[other], raw[at]
    elif kind < 0.94:
        del raw[at:]
    else:
        raw.insert(at, _ending(b"", rng))
    return [base64.b64encode(one).decode() for one in raw] or [base64.b64encode(json.dumps({}).encode()).decode()]
