"""The messages of the agent service as data: one row a message, in `run_messages.py` and `exec_messages.py`.

    Message = field, field, …      a field is `number name type`

A bar before the number: a member of the message's one oneof. After the type: `?` for a value that is written even when
it is the default, `[]` for one that repeats. `enum(X)` is a varint, `bytes(X)` a message that is not read here. Rows
are parsed on demand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from proxy.providers.p5_cursor.wire import exec_messages, run_messages
from proxy.providers.p5_cursor.wire.scalars import SCALARS

_FIELD = re.compile(
    r"(?P<bar>\|?)(?P<number>\d+) (?P<name>\w+) (?P<type>[\w.]+(?:<\w+,\w+>)?)(?P<of>\([\w.]+\))?(?P<rule>|\?|\[\])"
)
_MAP = re.compile(r"map<(\w+),(\w+)>")
_CONTINUED = re.compile(r"\n +")

EMPTY = "(empty)"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message; `type` is a scalar type, the name of a message, or `map<K,V>`."""

    number: int
    name: str
    type: str
    repeated: bool = False
    #: Whether the value is written even when it is the default. Messages and members of a oneof always are.
    explicit: bool = False
    oneof: bool = False

    @property
    def is_map(self) -> bool:
        return self.type.startswith("map<")

    @property
    def is_scalar(self) -> bool:
        return self.type in SCALARS


class Schema:
    """The messages of some tables."""

    def __init__(self, *tables: str) -> None:
        rows = (row for table in tables for row in _CONTINUED.sub(" ", table).splitlines())
        self._rows = dict(row.split(" = ", 1) for row in rows)

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(self._rows)

    def fields(self, message: str) -> tuple[Field, ...]:
        """The fields of a message; for `map<K,V>` those of its entries. Raises KeyError for an unknown message."""
        if entry := _MAP.fullmatch(message):
            return Field(1, "key", entry[1], explicit=True), Field(2, "value", entry[2], explicit=True)
        row = self._rows[message]
        return () if row == EMPTY else tuple(_field(text) for text in row.split(", "))


def _field(text: str) -> Field:
    found = _FIELD.fullmatch(text)
    if found is None:
        raise ValueError(f"not a field: {text}")
    kind, oneof, rule = found["type"], bool(found["bar"]), found["rule"]
    is_message = kind == "bytes" and found["of"] is not None
    return Field(
        number=int(found["number"]),
        name=found["name"],
        type=kind,
        repeated=rule == "[]",
        explicit=oneof or is_message or rule == "?",
        oneof=oneof,
    )


TABLES = {**run_messages.TABLES, **exec_messages.TABLES}
#: The messages of the service.
AGENT = Schema(*TABLES.values())
