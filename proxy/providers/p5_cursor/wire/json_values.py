"""JSON values and the messages that carry them: between `Value`, `Struct`, `ListValue` and what JSON makes of them.

One level at a time: the codec calls these for each of the messages in one another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.providers.p5_cursor.wire.scalars import WireError

#: Up to here each integer is a double, and the other way round.
_EXACT = 1 << 53


def _number(value: float) -> int | float:
    return int(value) if abs(value) <= _EXACT and value.is_integer() else value


def _json_of(value: Mapping[str, Any]) -> Any:
    for member, content in value.items():
        if member == "number_value":
            return _number(content)
        return None if member == "null_value" else content
    return None  # what older clients write for null


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

#: message -> the JSON value of one that was read.
READ: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "Value": _json_of,
    "Struct": lambda read: read.get("fields", {}),
    "ListValue": lambda read: read.get("values", []),
}
#: message -> what to write for a JSON value.
WRITTEN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "Value": _value_of,
    "Struct": lambda content: {"fields": content},
    "ListValue": lambda content: {"values": content},
}
