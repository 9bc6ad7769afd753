"""`report sessions`: the conversations of a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.cli.history.documents import VERSION, csv_text, span_json
from proxy.cli.history.spans import TimeSpan, iso_text, short_text
from proxy.cli.history.tables import Column, fitted, own
from proxy.cli.history.used_table import count_text, short_names, title_of
from proxy.cli.usage import Terminal
from proxy.observe.history.conversations import Conversation, conversations
from proxy.observe.history.overview import usage_json
from proxy.observe.monitor.words import NONE, duration, share, tokens

#: Conversations of a table unless `--limit` names a number.
SHOWN = 20
_NAMES = ("session", "began", "ended", "account", "model", "project", "caller")


@dataclass(frozen=True, slots=True)
class SessionReport:
    """The conversations of a time, the newest first. `more`: whether there are older ones."""

    span: TimeSpan
    sessions: Sequence[Conversation]
    more: bool


def read_sessions(db: sqlite3.Connection, span: TimeSpan, limit: int | None) -> SessionReport:
    """The newest conversations of a time, at most `limit`."""
    found = conversations(db, span.since, span.until, -1 if limit is None else limit + 1)
    return SessionReport(span, found[:limit], limit is not None and len(found) > limit)


_Cell = Callable[[Conversation, float], str]
#: The columns after the session's name.
_COLUMNS: Sequence[tuple[Column, _Cell]] = (
    (Column("project", right=False, least=8), lambda one, _now: one.project or NONE),
    (Column("model", right=False, least=10), lambda one, _now: one.model or NONE),
    (Column("account", right=False, least=8, rank=6), lambda one, _now: one.account or NONE),
    (Column("caller", right=False, least=8, rank=5), lambda one, _now: one.caller or NONE),
    (Column("turns"), lambda one, _now: count_text(one.usage.requests)),
    (Column("fail", rank=4), lambda one, _now: count_text(one.usage.failed)),
    (Column("tokens"), lambda one, _now: tokens(one.usage.input + one.usage.output)),
    (Column("output", rank=3), lambda one, _now: tokens(one.usage.output)),
    (Column("cache", rank=1), lambda one, _now: share(one.usage.cached_share)),
    (Column("last"), lambda one, now: short_text(one.ended, now)),
    (Column("lasted", rank=2), lambda one, _now: duration(one.ended - one.began)),
)


def session_lines(report: SessionReport, terminal: Terminal, now: float, program: str) -> list[str]:
    """A line for each conversation."""
    return [*title_of(report.span, terminal, ", the newest first"), "", *_table(report, terminal, now, program)]


def _table(report: SessionReport, terminal: Terminal, now: float, program: str) -> Iterator[str]:
    if not report.sessions:
        yield "no conversations"
        return
    names = short_names([one.session for one in report.sessions])
    columns = [Column("session", right=False, least=8), *(column for column, _ in _COLUMNS)]
    rows = [
        [own(name, terminal), *(own(cell(one, now), terminal) for _, cell in _COLUMNS)]
        for name, one in zip(names, report.sessions, strict=True)
    ]
    table = fitted(columns, rows, terminal.columns)
    yield from table.heads()
    yield from map(table.line, rows)
    yield ""
    if report.more:
        yield f"There are older ones: {program} report sessions --limit N"
    yield f"The turns of one: {program} report sessions ID"


def sessions_json(report: SessionReport) -> dict[str, Any]:
    """`{"version": 1, "report": "sessions", "since": "…", "until": "…", "more": false, "sessions": [{…}]}`"""
    return {
        "version": VERSION,
        "report": "sessions",
        **span_json(report.span),
        "more": report.more,
        "sessions": [_row(one) for one in report.sessions],
    }


def sessions_csv(report: SessionReport) -> str:
    rows = [_row(one) for one in report.sessions]
    return csv_text(rows, rows[0] if rows else _NAMES)


def _row(one: Conversation) -> dict[str, Any]:
    names = {name: getattr(one, name) or None for name in _NAMES}
    return names | {"began": iso_text(one.began), "ended": iso_text(one.ended)} | usage_json(one.usage, times=())
