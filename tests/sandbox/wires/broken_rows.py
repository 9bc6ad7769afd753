"""From a table of request checks and the objects that pass it: for each row, an object that this row refuses."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple

from raw_client import ABSENT, Path, spoilt

from proxy.sandbox.wires.field_checks import ByKind, Checked, Each, Field, Inside, Known, Row, Table, check, look, place
from proxy.sandbox.wires.refusal import Refused

#: What is put in the place of a good value: each breaks some row.
JUNK: list[Any] = [
    *(ABSENT, None, 1, 0.3, True, "", "surprise", "a b", "a" * 65, [], ["surprise"], {}, {"type": "surprise"}),
    *(
        "system",
        "developer",
        "web_search",
        "item_reference",
        "required",
        "image_url",
        "video_url",
        "gpt-5.5",
        "gpt-5.6-luna",
    ),
    *("responses_websockets", "text/event-stream"),
    *({"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": 1}),
]

#: A body that passes, and what makes the rules for whatever becomes of it.
Good = tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]


class Broken(NamedTuple):
    """What became of a body, what it was checked by, and what the row says of it."""

    body: dict[str, Any]
    rules: Any
    refused: Refused


class Reached(NamedTuple):
    """A row of a table, and the object that it looks at: the way to it, what to call its place, what is made of it."""

    row: Row
    table: Table
    way: Path = ()
    where: str = ""
    reads_as: Callable[[Any], Any] = lambda item: item

    def run(self, body: dict[str, Any], rules: Any) -> None:
        """Only this row."""
        self.row(self.reads_as(at(body, self.way)), self.where, Checked(body, rules))


def at(body: Any, way: Iterable[Any]) -> Any:
    return functools.reduce(lambda value, step: value[step], way, body)


def data_rows(table: Table) -> dict[int, Field | Known]:
    """The rows in a table and in the tables below it that are data, by identity; a table may lead to itself."""
    rows: dict[int, Row] = {}
    tables = [table]
    while tables:
        new = [row for row in tables.pop() if id(row) not in rows]
        rows |= {id(row): row for row in new}
        tables += itertools.chain.from_iterable(map(_below, new))
    return {key: row for key, row in rows.items() if isinstance(row, Field | Known)}


def _below(row: Row) -> Iterable[Table]:
    if isinstance(row, Known):
        return row.members.values()
    if isinstance(row, ByKind):
        return [*row.tables.values(), row.other]
    return [row.table] if isinstance(row, Inside | Each) else []


def _reached(item: Any, here: Reached) -> Iterator[Reached]:
    """All rows that look at anything in a good object."""
    for row in here.table:
        yield (now := here._replace(row=row))
        if isinstance(row, Known):
            for name in item:
                yield from _reached(item, now._replace(table=row.members[name]))
        elif isinstance(row, ByKind):
            yield from _reached(item, now._replace(table=row.tables.get(item[row.member], row.other)))
        elif isinstance(row, Inside | Each):
            yield from _inside(row, look(item, row.path), now._replace(table=row.table))


def _inside(row: Inside | Each, value: Any, here: Reached) -> Iterator[Reached]:
    way = (*here.way, *row.path.split("."))
    if isinstance(row, Each):
        around = place("" if row.top else here.where, row.path)
        for index, one in enumerate(value if isinstance(value, list) else ()):
            below = here._replace(way=(*way, index), where=f"{around}[{index}]", reads_as=row.reads_as)
            yield from _reached(row.reads_as(one), below)
    elif value is not None and isinstance(value, row.only):
        yield from _reached(value, Reached(row, here.table, way, place(here.where, row.path)))


def broken_rows(table: Table, goods: Iterable[Good], skipped: Iterable[int] = ()) -> dict[int, Broken]:
    """By the identity of a row: a body that the whole table refuses just as this row alone does."""
    found: dict[int, Broken] = {}
    wanted = data_rows(table).keys() - set(skipped)
    for good, rules in goods:
        check(good, table, rules(good))
        for reached in _reached(good, Reached(table[0], table)):
            key = id(reached.row)
            if key in wanted and key not in found:
                found.update(zip([key], _breaches(good, rules, table, reached), strict=False))
    return found


def _breaches(good: dict[str, Any], rules: Callable[[Any], Any], table: Table, reached: Reached) -> Iterator[Broken]:
    for body in _spoilt(good, reached):
        alone = _refusal(lambda body=body: reached.run(body, rules(body)))  # type: ignore[misc]
        whole = alone and _refusal(lambda body=body: check(body, table, rules(body)))  # type: ignore[misc]
        if alone and whole and (alone.status, alone.body) == (whole.status, whole.body):
            yield Broken(body, rules(body), alone)


def _refusal(run: Callable[[], None]) -> Refused | None:
    try:
        run()
    except Refused as refused:
        return refused
    except (AttributeError, LookupError, TypeError):
        return None  # rows before this one would have refused it
    return None


def _spoilt(good: dict[str, Any], reached: Reached) -> Iterator[dict[str, Any]]:
    """Copies with junk at the member of the row, at others of its object, at those of the body; or the object twice."""
    item = at(good, reached.way)
    own = reached.row.path if isinstance(reached.row, Field) else ""
    known = [row.path for row in reached.table if isinstance(row, Field) and row.path]
    paths = dict.fromkeys([own, *known, *(item if isinstance(item, dict) else ()), "surprise"])
    ways = [(*reached.way, *(path.split(".") if path else ())) for path in paths]
    for way, junk in itertools.product([*ways, *((name,) for name in good)], JUNK):
        yield from _changed(good, way, junk)
    if reached.way and isinstance(reached.way[-1], int):
        yield from _changed(good, reached.way[:-1], [*at(good, reached.way[:-1]), copy(item)])


def _changed(good: dict[str, Any], way: Path, value: Any) -> Iterator[dict[str, Any]]:
    """A copy with the value there, if the way leads anywhere."""
    with contextlib.suppress(LookupError, TypeError, ValueError):
        yield spoilt(good, way, value)
