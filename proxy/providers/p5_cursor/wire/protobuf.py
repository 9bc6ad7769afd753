"""Messages of the agent service between bytes and dicts: `encode`, `decode` and `members`.

A message is a dict with the names of `tables/`; a member of a oneof is a member like the others. Bytes and messages
that nobody looks into are `bytes`, enums numbers, `Value` and `Struct` the JSON that they carry. What is absent is
absent.
All three raise WireError, and KeyError for a message that no table has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from proxy.providers.p5_cursor.wire import reading, writing
from proxy.providers.p5_cursor.wire.json_values import READ, WRITTEN
from proxy.providers.p5_cursor.wire.reading import Reader
from proxy.providers.p5_cursor.wire.scalars import WireError
from proxy.providers.p5_cursor.wire.schema import AGENT, Schema
from proxy.providers.p5_cursor.wire.writing import Writer

__all__ = ["Codec", "WireError", "decode", "encode", "members"]


class Codec:
    """Of the messages of one schema; each is prepared when it is used for the first time."""

    def __init__(self, schema: Schema) -> None:
        self._read_rows = cache(partial(reading.rows_of, schema))
        self._write_rows = cache(partial(writing.rows_of, schema))

    def encode(self, message: str, value: Mapping[str, Any]) -> bytes:
        """In ascending order of numbers, so that equal values are equal bytes. A member that the message lacks, two of
        one oneof and a value that its field cannot hold are errors."""
        writer = Writer(self._write_rows)
        writer.message(message, WRITTEN[message](value) if message in WRITTEN else value, 1)
        return b"".join(writer.pieces)

    def decode(self, message: str, data: bytes) -> Any:
        """A dict; for `Value` and the like its JSON. Of several values of one member the last counts, and so it is
        with the members of a oneof; fields without a row are left out."""
        value = Reader(self._read_rows, data).message(message, 0, len(data), 1)
        return READ[message](value) if message in READ else value

    def members(self, message: str, data: bytes) -> list[tuple[str, Any]]:
        """Every member in the order of the bytes, repeated ones and all of a oneof, as (name, value).

        The value of `interaction_update` is such a list itself. That of a member in `reading.UNREAD` is `{}`: the
        answer does not depend on it, and it may be large.
        """
        return Reader(self._read_rows, data).members(message, 0, len(data))


_AGENT = Codec(AGENT)
encode, decode, members = _AGENT.encode, _AGENT.decode, _AGENT.members
