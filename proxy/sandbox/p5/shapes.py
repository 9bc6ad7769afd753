"""Checks received messages against the fields that the service knows, at every level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.sandbox.wires.connect.protobuf import LENGTH, VARINT, Malformed, Message

NUMBER, TEXT, BYTES = "number", "text", "bytes"

#: Field of a message -> its type, or the fields of the message in it.
Shape = Mapping[int, "str | Shape"]

#: Levels of messages that the service reads.
MAX_LEVELS = 64


def misshapen(message: Message, shape: Shape, where: str, level: int = 0) -> Iterator[str]:
    """Yields unknown fields, wrong wire types, and texts that are not UTF-8. Raises Malformed for too many levels.

    >>> list(misshapen(Message(bytes.fromhex("0801")), {1: TEXT}, "result 5.1"))
    ['result 5.1 has the wire type 0 in field 1']
    """
    if level > MAX_LEVELS:
        raise Malformed("messages are nested too deeply")
    strange = [place for place in message.fields if place not in shape]
    if strange:
        yield f"{where} has the fields {strange}"
    for place, kind in message.numbers:
        if place in shape and kind != (VARINT if shape[place] == NUMBER else LENGTH):
            yield f"{where} has the wire type {kind} in field {place}"
    for place, expected in shape.items():
        if expected == TEXT and not all(map(_is_utf8, message.fields.get(place, ()))):
            yield f"{where} has a text that is not UTF-8 in field {place}"
        elif isinstance(expected, Mapping):
            for inner in message.all(place):
                yield from misshapen(inner, expected, f"{where}.{place}", level + 1)


def _is_utf8(value: int | bytes) -> bool:
    try:
        return isinstance(value, int) or value.decode() is not None
    except UnicodeDecodeError:
        return False
