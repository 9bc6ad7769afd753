"""Dataclasses of plain values, read from the JSON of a program that may be another version, or hostile."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")

#: Larger numbers are no counts, times or shares, and may overflow when they are reckoned with.
_LIMIT = 2**63


def made(kind: type[T], value: Mapping[str, Any]) -> T:
    """The object of a dataclass: missing members have their defaults, unknown ones are left out. Raises ValueError."""
    hints = typing.get_type_hints(kind)
    present = ((name, hint) for name, hint in hints.items() if name in value)
    known = {name: _fit(hint, value[name]) for name, hint in present if value[name] is not None or _may_miss(hint)}
    try:
        return kind(**known)
    except TypeError as error:
        raise ValueError(f"a {kind.__name__} is not whole: {error}") from None


def _may_miss(hint: Any) -> bool:
    return typing.get_origin(hint) is types.UnionType


def _fit(hint: Any, value: Any) -> Any:
    """Converts a JSON value to the type of a field. Raises ValueError."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a {hint.__name__}")
        return made(hint, value)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _fit(inner[0], value)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError("expected a list")
        return tuple(_fit(inner[0], one) for one in value)
    if origin is not None:
        if not isinstance(value, Mapping):
            raise ValueError("expected an object")
        return {str(name): _fit(inner[1], one) for name, one in value.items()}
    if isinstance(value, int | float) and abs(value) >= _LIMIT:
        raise ValueError("expected a number of 64 bits")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, float) and math.isnan(value):  # Python's JSON knows it
        raise ValueError("expected a number")
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ValueError(f"expected {hint.__name__}")
    return value
