"""The columns of each pane, by the width of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from proxy.observe.monitor.sheet import life_share, newest_share
from proxy.observe.monitor.snapshot import CacheView, RequestRow
from proxy.observe.monitor.terminal.cells import Line, Span, fit
from proxy.observe.monitor.terminal.rows import EventLine, SessionLine
from proxy.observe.monitor.terminal.view import Pane
from proxy.observe.monitor.words import (
    NAME_WIDTH,
    NONE,
    clock,
    counted,
    in_room,
    model,
    rate,
    session_name,
    share,
    sparkline,
    spinner,
    target,
    tokens,
    took,
)

#: Columns that name a session.
_NAMES = frozenset({"id", "session"})
#: Name of a tier and its least inner width.
TIERS = (("wide", 152), ("expanded", 118), ("medium", 88), ("narrow", 76), ("emergency", 0))

STATUS_ROLES = {
    "completed": "good",
    "streaming": "live",
    "compacting": "compact",
    "failed": "bad",
    "abandoned": "bad",
    "upstream": "busy",
    "selected": "wait",
    "started": "wait",
}

#: Headings of the output of the last minutes, by width.
_TREND_TITLES = ((15, "Tokens/10s · 4k"), (10, "Tokens/10s"), (7, "Tok/10s"), (0, "Trend"))
#: Least width of the column that takes the spare width, else columns marked with `?` are left out.
MIN_FLEXIBLE = {"wide": 16, "expanded": 8, "medium": 16, "narrow": 14, "emergency": 8}

#: `name:cells`, `*` for the spare width, `?` for columns left out where that gets too narrow: the last one first.
TABLES: Mapping[Pane, Mapping[str, str]] = {
    "sessions": {
        "wide": "mark:2 id:8 project:16 a:3 r:4 f:3 provider:8 model:36? effort:6 in:7 out:7 cache:6 rate:12 trend:* "
        "status:11",
        "expanded": "mark:2 id:8 project:13 arf:7 prov:4 model:18 effort:6 in:7 out:7 cache:5 rate:11 trend:* "
        "status:10",
        "medium": "mark:2 id:8 project:12 arf:7 prov:4 model:* cache:5? rate:11 trend:8 status:10",
        "narrow": "mark:2 id:8 project:10 arf:7 target:* cache:5? rate:11 trend:6 status:10",
        "emergency": "mark:2 id:8 target:* status:10?",
    },
    "active": {
        "wide": "started:8 phase:12 project:16 session:8 provider:8 model:36 effort:6 endpoint:* in:7 out:7 rate:12 "
        "elapsed:8",
        "expanded": "started:8 phase:12 project:12 session:8 prov:4 model:* effort:6 endpoint:12 rate:12 elapsed:8",
        "medium": "started:8 phase:12 prov:4 model:* effort:6 endpoint:12 rate:12 elapsed:8",
        "narrow": "started:8 phase:12 prov:4 model:* effort:6? rate:12 elapsed:8",
        "emergency": "started:8? phase:12 target:* elapsed:8?",
    },
    "recent": {
        "wide": "finished:8 code:4 project:16 session:8 provider:8 model:36 effort:6 endpoint:12 latency:8 rate:12 "
        "in:7 out:7 cached:6 details:*",
        "expanded": "finished:8 code:4 project:12 session:8 prov:4 model:* effort:6 latency:8 rate:12 in:7 out:7 "
        "cached:6? bad:1",
        "medium": "finished:8 code:4 prov:4 model:* effort:6? latency:8 rate:12 in:7 out:7 cached:6? bad:1",
        "narrow": "finished:8 code:4 prov:4 model:* latency:7 rate:11 in:7 out:6 bad:1",
        "emergency": "finished:8? code:4 target:* latency:7? bad:1",
    },
    "events": {
        "wide": "time:8 level:5 project:16 session:8 provider:8 model:28 message:*",
        "expanded": "time:8 level:5 project:12 prov:4 model:24 message:*",
        "medium": "time:8 level:5 prov:4 model:20 message:*",
        "narrow": "time:8 level:5 prov:4 model:14 message:*",
        "emergency": "time:8? level:5 message:*",
    },
}


@dataclass(frozen=True, slots=True)
class Column:
    """cell   a row and the time -> text and style, for so many cells"""

    title: str
    cell: Callable[[Any, float, int], Span]
    right: bool = False


@dataclass(frozen=True, slots=True)
class Sized:
    column: Column
    width: int

    @property
    def heading(self) -> str:
        title = self.column.title
        if self.column is COLUMNS["trend"]:
            title = next(words for width, words in _TREND_TITLES if self.width >= width)
        return fit(title, self.width, right=self.column.right)

    def cell(self, row: object, now: float) -> Span:
        run = self.column.cell(row, now, self.width)
        return Span(fit(run.text, self.width, right=self.column.right), run.role)


def tier_of(inner: int) -> str:
    return next(name for name, width in TIERS if inner >= width)


@lru_cache(maxsize=64)
def columns_of(pane: Pane, inner: int, named: int = NAME_WIDTH) -> tuple[Sized, ...]:
    """The columns that fit, with their widths; together with a blank between them they take `inner` cells. `named`:
    what the name of a session takes. The column with the spare width gives it what is over its least, or half of that
    where the name stays cut all the same."""
    tier = tier_of(inner)
    wanted, spare = _fitting(TABLES[pane][tier], inner, MIN_FLEXIBLE[tier])
    needed, room = named - NAME_WIDTH, spare - MIN_FLEXIBLE[tier]
    wider = needed if needed <= room else room // 2
    if wider > 0 and (names := [index for index, (name, _) in enumerate(wanted) if name in _NAMES]):
        wanted[names[0]] = (wanted[names[0]][0], str(NAME_WIDTH + wider))
        spare -= wider
    return _sized(wanted, spare, COLUMNS)


def fitting(table: str, columns: Mapping[str, Column], inner: int, least: int) -> tuple[Sized, ...]:
    """The columns of a table written as those of `TABLES`. `least`: cells of the one with the spare width."""
    return _sized(*_fitting(table, inner, least), columns)


def _fitting(table: str, inner: int, least: int) -> tuple[list[tuple[str, str]], int]:
    """Those that fit, and the spare width."""
    wanted = [(name, size) for name, _, size in (part.partition(":") for part in table.split())]
    while (spare := _spare(wanted, inner)) < least and (left := _optional(wanted)) is not None:
        del wanted[left]
    return wanted, spare


def _sized(wanted: list[tuple[str, str]], spare: int, columns: Mapping[str, Column]) -> tuple[Sized, ...]:
    return tuple(Sized(columns[name], max(1, spare) if size == "*" else int(size.rstrip("?"))) for name, size in wanted)


def _spare(wanted: list[tuple[str, str]], inner: int) -> int:
    return inner - sum(int(size.rstrip("?")) for _, size in wanted if size != "*") - _blanks(wanted)


def _blanks(wanted: list[tuple[str, str]]) -> int:
    return len(wanted) - 1 - (wanted[0][0] == "mark")  # no blank after the mark


def _optional(wanted: list[tuple[str, str]]) -> int | None:
    return next((index for index in reversed(range(len(wanted))) if wanted[index][1].endswith("?")), None)


def row_line(columns: tuple[Sized, ...], row: object, now: float) -> Line:
    return _joined(columns, [sized.cell(row, now) for sized in columns])


def heading_line(columns: tuple[Sized, ...]) -> Line:
    return _joined(columns, [Span(sized.heading, "heading") for sized in columns])


def _joined(columns: tuple[Sized, ...], cells: list[Span]) -> Line:
    marked = columns[0].column is COLUMNS["mark"]
    found: list[Span] = []
    for index, cell in enumerate(cells):
        if index and not (marked and index == 1):
            found.append(Span(" "))
        found.append(cell)
    return tuple(found)


# Cells.


def _status(text: str) -> Span:
    return Span(text or NONE, STATUS_ROLES.get(text, ""))


def styled(read: Callable[[Any], Span]) -> Callable[[Any, float, int], Span]:
    return lambda row, *_: read(row)


def plain(read: Callable[[Any], str | None]) -> Callable[[Any, float, int], Span]:
    return lambda row, *_: _value(read(row))


def _value(text: str | None) -> Span:
    return Span(text or NONE, "" if text and text != NONE else "dim")


def _id(row: SessionLine, _now: float, width: int) -> Span:
    if row.agent is None:
        return Span(session_name(row.session.id, width), "bold")
    return Span(row.sign + (row.agent.id or "main"), "dim")


def _project(row: Any) -> str | None:
    if isinstance(row, SessionLine) and row.agent is not None:
        return "agent" if row.agent.id else "conversation"
    project: str | None = _of(row).project
    return project


def _of(row: Any) -> Any:
    """The row with the names and numbers."""
    return row.shown if isinstance(row, SessionLine) else row


def _session(row: RequestRow | EventLine, _now: float, width: int) -> Span:
    if isinstance(row, EventLine) and row.session is None and row.request is None:
        return _value(None)
    return _value(session_name(row.session, width))


def _counts(row: SessionLine, _now: float, width: int) -> Span:
    return Span(counted(row.shown.active, row.shown.requests, row.shown.failures, width))


def _count(name: str, role: str = "") -> Callable[[SessionLine, float, int], Span]:
    """A count; `role` colours it unless it is 0."""

    def cell(row: SessionLine, _now: float, width: int) -> Span:
        count = getattr(row.shown, name)
        return Span(in_room(count, width), role if count else "dim")

    return cell


def _trend(row: SessionLine, _now: float, width: int) -> Span:
    return Span(sparkline(row.session.history, width) if row.agent is None else "", "trend")


def _phase(row: RequestRow, now: float, _width: int) -> Span:
    """The spinner, and the phase of the request."""
    status = row.status
    blank = "" if status == "compacting" else " "
    return Span(f"{spinner(now)}{blank}{status}", STATUS_ROLES.get(status, ""))


def _code(row: RequestRow) -> Span:
    return Span(NONE if row.http is None else str(row.http), code_role(row))


def code_role(request: RequestRow) -> str:
    if request.http is None:
        return STATUS_ROLES.get(request.status, "")
    return "bad" if request.http >= 500 or (request.bad and request.http < 400) else "wait" if request.bad else "good"


def _details(row: RequestRow) -> Span:
    return Span(row.error or row.status, "bad") if row.bad else Span(row.cache.reason, "compact")


def _share(value: float | None, cache: CacheView) -> Span:
    return Span(share(value), "compact" if cache.reason else "dim" if value is None else "")


#: Name of a column -> its cell.
COLUMNS: Mapping[str, Column] = {
    "mark": Column("", styled(lambda row: Span(" " + (row.sign if row.agent is None else " "), "busy"))),
    "id": Column("ID", _id),
    "project": Column("Project", plain(_project)),
    "a": Column("A", _count("active", "live"), right=True),
    "r": Column("R", _count("requests"), right=True),
    "f": Column("F", _count("failures", "bad"), right=True),
    "arf": Column("A/R/F", _counts, right=True),
    "provider": Column("Provider", plain(lambda row: _of(row).provider)),
    "prov": Column("Prov", plain(lambda row: _of(row).provider)),
    "model": Column("Model", plain(lambda row: model(_of(row).requested, _of(row).resolved))),
    "target": Column("Target", plain(lambda row: target(_of(row)))),
    "effort": Column("Effort", plain(lambda row: _of(row).effort)),
    "in": Column("In", plain(lambda row: tokens(_of(row).input_tokens)), right=True),
    "out": Column("Out", plain(lambda row: tokens(_of(row).output_tokens)), right=True),
    "cache": Column("Cache", styled(lambda row: _share(life_share(row.shown), row.shown.cache)), right=True),
    "cached": Column("Cached", styled(lambda row: _share(newest_share(row), row.cache)), right=True),
    "rate": Column("Rate", plain(lambda row: rate(_of(row).throughput)), right=True),
    "trend": Column("Trend", _trend),
    "status": Column("Status", styled(lambda row: _status(row.shown.status))),
    "started": Column("Started", plain(lambda row: clock(row.started_at))),
    "finished": Column("Finished", plain(lambda row: clock(row.finished_at))),
    "phase": Column("Status", _phase),
    "session": Column("Session", _session),
    "endpoint": Column("Endpoint", plain(lambda row: row.endpoint)),
    "elapsed": Column("Elapsed", plain(lambda row: took(row.elapsed)), right=True),
    "latency": Column("Latency", plain(lambda row: took(row.elapsed)), right=True),
    "code": Column("Code", styled(_code), right=True),
    "bad": Column("!", styled(lambda row: Span("!" if row.bad else "", "bad"))),
    "details": Column("Details", styled(_details)),
    "time": Column("Time", plain(lambda row: clock(row.at))),
    "level": Column("Code", styled(lambda row: Span(row.code, row.role)), right=True),
    "message": Column("Message", styled(lambda row: Span(row.message))),
}
