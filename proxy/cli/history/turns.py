"""`report sessions ID`: the turns of one conversation."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.cli.history.documents import VERSION, csv_text
from proxy.cli.history.spans import TimeSpan, iso_text, local_text, short_text
from proxy.cli.history.tables import Column, fitted, own, own_line
from proxy.cli.history.used_table import seconds_text
from proxy.cli.printable import counted, cut
from proxy.cli.usage import Terminal
from proxy.config import ConfigError
from proxy.errors import PROGRAM
from proxy.observe.history.conversations import MAX_TURNS, sessions_like, turns
from proxy.observe.history.past_request import COLUMNS, PastRequest
from proxy.observe.monitor.words import NONE, duration, percent, share, tokens

#: Sessions that are named when the beginning of an id fits several, and characters of a name.
_NAMED, _NAME = 5, 60
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class TurnReport:
    """The turns of a conversation, the oldest first. `more`: whether there are older ones."""

    session: str
    turns: Sequence[PastRequest]
    more: bool


def read_turns(db: sqlite3.Connection, start: str, span: TimeSpan | None, limit: int | None) -> TurnReport:
    """The newest turns of the session whose id begins like this, of a time if there is one. Raises ConfigError unless
    that is one session."""
    session = _session(db, start)
    read = turns(db, session, MAX_TURNS + 1)
    found = [one for one in read if span is None or span.since <= one.ended / 1000 < span.until]
    most = min(limit or MAX_TURNS, MAX_TURNS)
    return TurnReport(session, found[-most:], len(found) > most or len(read) > MAX_TURNS)


def _session(db: sqlite3.Connection, start: str) -> str:
    fitting = sessions_like(db, start, _NAMED + 1) if start else []
    if start in fitting or len(fitting) == 1:
        return start if start in fitting else fitting[0]
    shown = repr(cut(start, _NAME))
    if not fitting:
        raise ConfigError(f"no session in the history begins with {shown}: `{PROGRAM} report sessions` shows their ids")
    more = ", …" if len(fitting) > _NAMED else ""
    raise ConfigError(f"{shown} fits several sessions: {', '.join(cut(one, _NAME) for one in fitting[:_NAMED])}{more}")


_COLUMNS: Sequence[tuple[Column, Callable[[PastRequest, float], str]]] = (
    (Column("ended", right=False), lambda one, now: short_text(one.ended / 1000, now)),
    (Column("model", right=False, least=10), lambda one, _now: one.served or NONE),
    (Column("account", right=False, least=8, rank=5), lambda one, _now: one.account or NONE),
    (Column("agent", right=False, least=8, rank=6), lambda one, _now: one.agent or NONE),
    (Column("input"), lambda one, _now: tokens(one.input)),
    (Column("cache"), lambda one, _now: share(_cached_share(one))),
    (Column("output"), lambda one, _now: tokens(one.output)),
    (Column("first s", rank=2), lambda one, _now: seconds_text(one.first_ms)),
    (Column("total s", rank=3), lambda one, _now: seconds_text(one.total_ms)),
    (Column("end", right=False, least=21, rank=1), lambda one, _now: end_of(one)),
)


def _cached_share(one: PastRequest) -> float | None:
    return one.cached / one.input if one.input and one.cached is not None else None


def end_of(one: PastRequest) -> str:
    """How a turn ended: its stop reason, or why it has none."""
    if one.outcome == "abandoned":
        return "client left"
    if one.outcome == "failed" or (one.http or 0) >= 400:
        return " ".join(filter(None, ("failed", str(one.http or ""), one.kind)))
    return one.stop or one.outcome


def turn_lines(report: TurnReport, terminal: Terminal, now: float) -> list[str]:
    """A line for each turn, and what else happened to it below."""
    head = own_line(f"Session {report.session}", terminal)
    if not report.turns:
        return [head, "", "no turns in this time"]
    columns = [column for column, _ in _COLUMNS]
    rows = [[own(cell(one, now), terminal) for _, cell in _COLUMNS] for one in report.turns]
    table = fitted(columns, rows, terminal.columns)
    lines = [head, *_about(report, terminal), "", *table.heads()]
    for one, row in zip(report.turns, rows, strict=True):
        lines.append(table.line(row))
        lines += [own_line(_INDENT + note, terminal) for note in _notes(one)]
    return lines


def _about(report: TurnReport, terminal: Terminal) -> Iterator[str]:
    first, last = report.turns[0], report.turns[-1]
    begun, ended = (first.ended - first.total_ms) / 1000, last.ended / 1000
    whose = [f"{name} {text}" for name, text in (("project", last.project), ("caller", last.caller)) if text]
    used = sum((one.input or 0) + (one.output or 0) for one in report.turns)
    count = counted(len(report.turns), "turn")
    yield own_line(", ".join([*whose, f"{count}, {tokens(used)} tokens"]), terminal)
    yield f"{local_text(begun)} to {local_text(ended)} ({duration(ended - begun)})"
    if report.more:
        yield f"There are older turns; these are the newest {len(report.turns):,}."


def _notes(one: PastRequest) -> Iterator[str]:
    if one.fallback:
        yield f"in place of {one.fallback}"
    if one.lost:
        expected = "" if one.expected is None else f", {percent(one.expected / 10)} expected"
        yield f"cache {share(_cached_share(one))}{expected}: {one.lost}"
    if one.retries:
        yield f"retries: {one.retries}"
    if one.searches:
        yield f"searches: {one.searches}"


def turns_json(report: TurnReport) -> dict[str, Any]:
    """`{"version": 1, "report": "turns", "session": "…", "more": false, "turns": [{…}]}`, a turn as in `PastRequest`"""
    rows = [_row(one) for one in report.turns]
    return {"version": VERSION, "report": "turns", "session": report.session, "more": report.more, "turns": rows}


def turns_csv(report: TurnReport) -> str:
    return csv_text([_row(one) for one in report.turns], COLUMNS)


def _row(one: PastRequest) -> dict[str, Any]:
    return one._asdict() | {"ended": iso_text(one.ended / 1000)}
