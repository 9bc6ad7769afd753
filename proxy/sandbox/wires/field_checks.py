"""Request checks as data: the rows of a table are applied in order, and the first one that a body violates refuses it.

Rows are `Field` (checks a member), `Known` (allows no other members), `Inside` and `Each` (apply a table to a member,
or to each of its elements) and `ByKind` (selects a table by an object's type). Functions serve as rows where several
places of the body decide: pairs of calls and results, encrypted content, lanes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from proxy.sandbox.wires.refusal import MISSING, UNKNOWN, WRONG_TYPE, WRONG_VALUE, Refusal, plain


@dataclass(slots=True)
class Checked:
    """The state of a check: the model's rules, and the open calls so far."""

    body: Mapping[str, Any]
    rules: Any = None
    open_calls: dict[Any, bool] = field(default_factory=dict)


#: Checks an object, given its place and what is known. Raises Refused.
Row = Callable[[Any, str, Checked], None]
Table = tuple[Row, ...]

#: The service's words for what it expects instead of this value; None for a good value.
Fault = Callable[[Any, Checked], str | None]


def check(item: Any, table: Table, rules: Any = None, where: str = "") -> None:
    """Raises Refused for the first row that the object violates; `where` names its place."""
    read(item, table, where, Checked(item, rules))


def read(item: Any, table: Table, where: str, seen: Checked) -> None:
    for row in table:
        row(item, where, seen)


def look(item: Any, path: str) -> Any:
    """The value at the path (`a.b`, empty for the object itself); None when it is missing."""
    for name in path.split(".") if path else ():
        item = item.get(name) if isinstance(item, Mapping) else None
    return item


def place(where: str, path: str) -> str:
    return f"{where}.{path}" if where and path else where or path


@dataclass(frozen=True, slots=True)
class Field:
    """Checks that the value at `path` has no `fault`. Null and absence are faults only if it is `needed`.

    `when` names a rule without which the row does not apply, `at` the refused place, if it is another."""

    path: str
    fault: Fault
    refusal: Refusal
    needed: bool
    when: str = ""
    at: str = ""

    def __call__(self, item: Any, where: str, seen: Checked) -> None:
        value = look(item, self.path)
        if (value is None and not self.needed) or (self.when and not getattr(seen.rules, self.when)):
            return
        expected = self.fault(value, seen)
        if expected is not None:
            raise self.refusal.fill(place(where, self.at or self.path), where, value, expected, item)


def optional(
    path: str, fault: Fault | str, refusal: Refusal | str = WRONG_VALUE, *, needed: bool = False, **more: str
) -> Field:
    """A row for an optional member. The fault may be a word of TYPES, the refusal only its message."""
    known = TYPES[fault] if isinstance(fault, str) else fault
    return Field(path, known, plain(refusal) if isinstance(refusal, str) else refusal, needed, **more)


def required(path: str, fault: Fault | str, refusal: Refusal | str = MISSING, **more: str) -> Field:
    return optional(path, fault, refusal, needed=True, **more)


def members(types: str, refusal: Refusal = WRONG_TYPE) -> tuple[Field, ...]:
    """Rows for optional members, as `name: type, other: type`."""
    pairs = (pair.split(": ") for pair in types.split(", "))
    return tuple(optional(name, kind, refusal) for name, kind in pairs)


class Known:
    """Allows only these members (`one other`), each with a table of its own when they are a mapping."""

    def __init__(self, names: str | Mapping[str, Table], refusal: Refusal = UNKNOWN) -> None:
        self.members: Mapping[str, Table] = dict.fromkeys(names.split(), ()) if isinstance(names, str) else names
        self.refusal = refusal

    def __call__(self, item: Any, where: str, seen: Checked) -> None:
        for name in item:
            if name not in self.members:
                raise self.refusal.fill(place(where, name), where, name)
            read(item, self.members[name], where, seen)


@dataclass(frozen=True, slots=True)
class Inside:
    """Applies a table to the value at `path`, if it has this type."""

    path: str
    table: Table
    only: type = object

    def __call__(self, item: Any, where: str, seen: Checked) -> None:
        value = look(item, self.path)
        if value is not None and isinstance(value, self.only):
            read(value, self.table, place(where, self.path), seen)


@dataclass(frozen=True, slots=True)
class Each:
    """Applies a table to each element of the list at `path`, or of what `reads_as` makes of it; does nothing without a
    list.

    `top`: an element's place is named as if the list were at the top of the body."""

    path: str
    table: Table
    reads_as: Callable[[Any], Any] = lambda value: value
    top: bool = False

    def __call__(self, item: Any, where: str, seen: Checked) -> None:
        values = look(item, self.path)
        around = place("" if self.top else where, self.path)
        for index, value in enumerate(values if isinstance(values, list) else ()):
            read(self.reads_as(value), self.table, f"{around}[{index}]", seen)


@dataclass(frozen=True, slots=True)
class ByKind:
    """Selects a table by the value of the member, which an earlier row checked to be a word."""

    member: str
    tables: Mapping[str, Table]
    other: Table = ()

    def __call__(self, item: Any, where: str, seen: Checked) -> None:
        read(item, self.tables.get(item[self.member], self.other), where, seen)


def by_type(tables: Mapping[str, Table], refusal: Refusal | str = WRONG_VALUE, known: Fault | None = None) -> Table:
    """Requires one of these types, or one that is `known`, and applies its table."""
    return (required("type", known or one_of(*tables), refusal), ByKind("type", tables))


def fits(test: Callable[[Any], object], expected: str = "") -> Fault:
    """Accepts values that pass the test."""
    return lambda value, _seen: None if test(value) else expected


def matches(pattern: str, expected: str = "") -> Fault:
    """Accepts texts that match the whole pattern."""
    return fits(lambda value: isinstance(value, str) and re.fullmatch(pattern, value), expected)


def judged(function: Callable[[Any], str | None]) -> Fault:
    """Uses the fault that the function returns for the value."""
    return lambda value, _seen: function(value)


def one_of(*words: Any, expected: str = "", last: str = " or ") -> Fault:
    """Accepts these words; `expected` defaults to their list: `'a', 'b' or 'c'`."""
    *first, end = [f"'{word}'" for word in words]
    listed = ", ".join(first) + last + end if first else end
    return fits(lambda value: value in words, expected or listed)


def demanded(name: str, words: str = "{}", between: str = ", ") -> Fault:
    """Accepts the values that the rule of this name lists; None there: any."""

    def fault(value: Any, seen: Checked) -> str | None:
        known = attrgetter(name)(seen.rules)
        if known is None or value in known:
            return None
        return words.format(between.join(str(one).removesuffix(".0") for one in known))

    return fault


def is_filled(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


#: Word for a type -> the fault of a value of another type.
TYPES: dict[str, Fault] = {
    "text": fits(lambda value: isinstance(value, str), "a string"),
    "filled": fits(is_filled, "a string"),
    "boolean": fits(lambda value: isinstance(value, bool), "a boolean"),
    "object": fits(lambda value: isinstance(value, dict), "an object"),
    "list": fits(lambda value: isinstance(value, list), "a list"),
    "filled list": fits(lambda value: isinstance(value, list) and value, "a list"),
    "texts or list": fits(lambda value: isinstance(value, str | list), "a string or a list of blocks"),
    "number": fits(is_number, "a number"),
    "positive": fits(lambda value: is_number(value) and isinstance(value, int) and value > 0, "a number from 1"),
    "anything": fits(lambda value: value is not None),
    "nothing": fits(lambda value: not value),
}
