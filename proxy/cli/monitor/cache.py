"""`cache`: the share of each session's input that the upstream read from its cache, and why it is less than
expected."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from proxy.cli.command import Context, say
from proxy.cli.monitor.running_proxy import add_url, fetch_snapshot
from proxy.cli.printable import table

if TYPE_CHECKING:
    from proxy.observe.monitor.snapshot import AgentRow, SessionRow, Snapshot

#: Characters of a session's id: fewer distinguish sessions, and `--json` has all of it.
_ID_CHARS = 8
_HEAD = ("session", "agent", "requests", "input", "cached", "newest", "expected", "reason")
#: Columns of numbers, aligned to the right.
_RIGHT = frozenset({"requests", "input", "cached", "newest", "expected"})


def cache_rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Returns a row for the main conversation and each agent of every session, the session seen last first.

    Shares are 0 to 1, None where they are unknown: `cached` of all input of its life, `newest` of its newest request
    that reported one, and the `expected` share of that.
    """
    sessions = sorted(snapshot.sessions, key=lambda session: -session.last_seen)
    return [
        row
        for session in sessions
        for row in [_row(session, agent.id, agent) for agent in session.agents] or [_row(session, None, session)]
    ]


def _row(session: SessionRow, agent: str | None, counts: SessionRow | AgentRow) -> dict[str, Any]:
    """The row of a session or an agent. A session without sub-agents counts for itself."""
    known = counts.input_tokens > 0 and (counts.cached_tokens > 0 or counts.cache.cached is not None)
    return {
        "session": session.id,
        "project": session.project,
        "agent": agent,
        "requests": counts.requests,
        "input_tokens": counts.input_tokens,
        "cached_tokens": counts.cached_tokens,
        "cached": counts.cached_tokens / counts.input_tokens if known else None,
        "newest": counts.cache.cached,
        "expected": counts.cache.expected,
        "reason": counts.cache.reason,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    from proxy.observe.monitor.terminal.cells import clean
    from proxy.observe.monitor.words import NO_SESSION, share, tokens

    session = NO_SESSION if row["session"] is None else row["session"][:_ID_CHARS]
    return (
        clean(f"{session} ({row['project']})" if row["project"] else session),
        clean(row["agent"][:_ID_CHARS]) if row["agent"] else "main",
        str(row["requests"]),
        tokens(row["input_tokens"]),
        *(share(row[name]) for name in ("cached", "newest", "expected")),
        clean(row["reason"]),
    )


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    add_url(parser)
    parser.add_argument("--json", action="store_true", help="the rows as JSON")


async def run(arguments: argparse.Namespace, context: Context) -> int:
    rows = cache_rows(await fetch_snapshot(context, arguments.url))
    if arguments.json:
        say(json.dumps(rows, indent=2))
    elif not rows:
        say("no request was served since the proxy was started")
    else:
        for line in table(_HEAD, map(_cells, rows), _RIGHT):
            say(line)
    return 0
