"""`cache`: how much of the input each session's upstream reads from its cache, and why it is less than it could be."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proxy.cli.command import Command, Context, say
from proxy.cli.monitor.running_proxy import fetch_snapshot

if TYPE_CHECKING:
    from proxy.observe.monitor.snapshot import AgentRow, SessionRow, Snapshot

#: Of a session's id: they are told apart by less, and `--json` has all of it.
_ID_CHARS = 8
_HEAD = ("session", "agent", "requests", "input", "cached", "newest", "expected", "reason")
#: Columns of numbers.
_RIGHT = frozenset({"requests", "input", "cached", "newest", "expected"})


@dataclass(frozen=True, slots=True)
class CacheRow:
    """A session's main conversation, or one of its agents. Shares are 0 to 1; None: not known.

    cached    of all input of its life
    newest    of its newest request that told it, and what was `expected` of that
    """

    session: str | None
    project: str | None
    agent: str | None
    requests: int
    input_tokens: int
    cached_tokens: int
    cached: float | None
    newest: float | None
    expected: float | None
    reason: str


def cache_rows(snapshot: Snapshot) -> list[CacheRow]:
    """The session that was seen last comes first."""
    sessions = sorted(snapshot.sessions, key=lambda session: -session.last_seen)
    return [
        row
        for session in sessions
        for row in [_row(session, agent.id, agent) for agent in session.agents] or [_row(session, None, session)]
    ]


def _row(session: SessionRow, agent: str | None, counts: SessionRow | AgentRow) -> CacheRow:
    """A session without sub-agents counts for itself."""
    known = counts.input_tokens > 0 and (counts.cached_tokens > 0 or counts.cache.cached is not None)
    return CacheRow(
        session.id,
        session.project,
        agent,
        counts.requests,
        counts.input_tokens,
        counts.cached_tokens,
        counts.cached_tokens / counts.input_tokens if known else None,
        counts.cache.cached,
        counts.cache.expected,
        counts.cache.reason,
    )


def cache_lines(rows: list[CacheRow]) -> Iterator[str]:
    """The table; the reason is the last column, as long as it is."""
    cells = [_HEAD, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        placed = (
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for name, cell, width in zip(_HEAD, line, widths, strict=True)
        )
        yield "  ".join(placed).rstrip()


def _cells(row: CacheRow) -> tuple[str, ...]:
    from proxy.observe.monitor.terminal.cells import clean
    from proxy.observe.monitor.words import NO_SESSION, share, tokens

    session = NO_SESSION if row.session is None else row.session[:_ID_CHARS]
    return (
        clean(f"{session} ({row.project})" if row.project else session),
        clean(row.agent[:_ID_CHARS]) if row.agent else "main",
        str(row.requests),
        tokens(row.input_tokens),
        share(row.cached),
        share(row.newest),
        share(row.expected),
        clean(row.reason),
    )


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("--url", help="of the proxy; without it the one that the settings of this machine name")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    rows = cache_rows(await fetch_snapshot(context, arguments.url))
    if arguments.json:
        say(json.dumps([_as_json(row) for row in rows], indent=2))
    elif not rows:
        say("no request was served since the proxy was started")
    else:
        for line in cache_lines(rows):
            say(line)
    return 0


def _as_json(row: CacheRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in CacheRow.__slots__}


CACHE = Command("cache", "show how much of the input came from prompt caches, and why not more", _run, _arguments)
