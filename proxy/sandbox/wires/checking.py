"""What the checks of bodies share: plain members by type, and the usual objections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proxy.sandbox.wires.refusal import Refused, invalid

#: Member -> whether its value will do, and what is expected.
Members = Mapping[str, tuple[Callable[[Any], bool], str]]


def check_members(body: Mapping[str, Any], members: Members) -> None:
    """Every member that is there has a value that will do; null counts as absent."""
    for name, (fits, expected) in members.items():
        value = body.get(name)
        if value is not None and not fits(value):
            raise invalid(f"Invalid type for '{name}': expected {expected}.", code="invalid_type", param=name)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def missing(where: str) -> Refused:
    return invalid(f"Missing required parameter: '{where}'.", code="missing_required_parameter", param=where)


def wrong(where: str, expected: str) -> Refused:
    return invalid(f"Invalid value for '{where}': expected {expected}.", code="invalid_value", param=where)


def extra(where: str) -> Refused:
    return invalid(f"{where}: Extra inputs are not permitted")
