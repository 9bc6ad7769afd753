"""`report` and `history`: their arguments, and what each is done by."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.cli.command import Context
from proxy.config import ConfigError

if TYPE_CHECKING:
    from proxy.cli.history.spans import TimeSpan
    from proxy.cli.usage import Terminal

_WEEK = "week"
_TIMES = ("today", "yesterday", _WEEK, "month")
_BY = ("model", "provider", "account", "project", "session", "caller", "day", "hour")
_WHAT = (
    f"the time: today, yesterday, {_WEEK} (the last 7 days with today, which is the default), month (the last 30); or"
    " sessions (conversations; with the beginning of an id the turns of one), limits (the windows of the allowances)"
)


def report_arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.description = "Show what the subscriptions did over time, from the history that the proxy keeps."
    parser.add_argument("what", nargs="?", choices=(*_TIMES, "sessions", "limits"), metavar="WHAT", help=_WHAT)
    parser.add_argument("session", nargs="?", metavar="ID", help="the beginning of a session's id, after `sessions`")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="from 2026-11-20, 2026-11-20T14:30, yesterday, or an age like 36h, 7d, 2w; down to a quarter of an hour",
    )
    parser.add_argument("--until", metavar="WHEN", help="up to a time as above; until now without it")
    parser.add_argument(
        "--by", choices=_BY, help=f"a row for each {', '.join(_BY[:-1])} or {_BY[-1]}; model without it"
    )
    parser.add_argument(
        "--limit",
        type=_positive,
        metavar="N",
        help="no more than N rows, those with the most tokens or the newest",
    )
    parser.add_argument("--prices", type=Path, metavar="FILE", help="adds what it costs at the prices of your own")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="everything as one JSON object")
    form.add_argument("--csv", action="store_true", help="the rows for a spreadsheet")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text[:9]) == int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1")
    return int(text)


def _check(what: str, arguments: argparse.Namespace, context: Context) -> None:
    """Raises ConfigError for arguments that do not go together."""
    if arguments.session is not None and what != "sessions":
        raise ConfigError(f"{arguments.session!r}: only `{context.program} report sessions` takes an id")
    if what not in _TIMES and (arguments.by or arguments.prices):
        raise ConfigError(f"--by and --prices are of the other reports, not of `report {what}`")
    if what == "limits" and arguments.limit:
        raise ConfigError(f"--limit is of the other reports: `{context.program} report limits` shows all windows")
    if arguments.what in _TIMES and (arguments.since or arguments.until):
        raise ConfigError(f"choose one of them: `{arguments.what}`, or --since and --until")


async def run_report(arguments: argparse.Namespace, context: Context) -> int:
    from proxy.cli.history.spans import span_of

    what = arguments.what or _WEEK
    _check(what, arguments, context)
    span = span_of(what if what in _TIMES else _WEEK, arguments.since, arguments.until, time.time())
    make = {"sessions": _turns if arguments.session is not None else _sessions, "limits": _limits}.get(what, _used)
    text = make(arguments, context, span)
    if arguments.csv and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace", newline="")  # a line ends with \r\n, see RFC 4180
    print(text, end="" if arguments.csv else "\n")
    return 0


# Each reads a report and returns it in the form that was asked for.


def _used(arguments: argparse.Namespace, context: Context, span: TimeSpan) -> str:
    from proxy.cli.history.documents import json_text, used_csv, used_json
    from proxy.cli.history.file import read, why_empty
    from proxy.cli.history.prices import read_prices
    from proxy.cli.history.used import read_report
    from proxy.cli.history.used_table import report_lines

    prices = None if arguments.prices is None else read_prices(arguments.prices)
    report = read(context, lambda db: read_report(db, arguments.by or _BY[0], span, prices))
    if arguments.json:
        return json_text(used_json(report, arguments.limit))
    if arguments.csv:
        return used_csv(report, arguments.limit)
    more = [] if report.kept_since is not None else [f"The history is empty. {why_empty(context)}."]
    return _drawn(lambda on: [*report_lines(report, on, arguments.limit), *more])


def _sessions(arguments: argparse.Namespace, context: Context, span: TimeSpan) -> str:
    from proxy.cli.history.documents import json_text
    from proxy.cli.history.file import read
    from proxy.cli.history.sessions import SHOWN, read_sessions, session_lines, sessions_csv, sessions_json

    limit = arguments.limit or (None if arguments.json or arguments.csv else SHOWN)
    report = read(context, lambda db: read_sessions(db, span, limit))
    if arguments.json:
        return json_text(sessions_json(report))
    if arguments.csv:
        return sessions_csv(report)
    return _drawn(lambda on: session_lines(report, on, time.time(), context.program))


def _turns(arguments: argparse.Namespace, context: Context, span: TimeSpan) -> str:
    from proxy.cli.history.documents import json_text
    from proxy.cli.history.file import read
    from proxy.cli.history.turns import read_turns, turn_lines, turns_csv, turns_json

    part = span if arguments.since or arguments.until else None
    report = read(context, lambda db: read_turns(db, arguments.session, part, arguments.limit))
    if arguments.json:
        return json_text(turns_json(report))
    return turns_csv(report) if arguments.csv else _drawn(lambda on: turn_lines(report, on, time.time()))


def _limits(arguments: argparse.Namespace, context: Context, span: TimeSpan) -> str:
    from proxy.cli.history.documents import json_text
    from proxy.cli.history.file import read
    from proxy.cli.history.limits import limit_lines, limits_csv, limits_json, read_limits

    report = read(context, lambda db: read_limits(db, span, time.time()))
    if arguments.json:
        return json_text(limits_json(report))
    return limits_csv(report) if arguments.csv else _drawn(lambda on: limit_lines(report, on))


def _drawn(lines: Callable[[Terminal], list[str]]) -> str:
    """A report as text for the standard output."""
    from proxy.cli.history.tables import report_terminal, written

    terminal = report_terminal()
    return written(lines(terminal), terminal)


def history_arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    from proxy.cli.ages import age

    parser.description = "Show where the history is and what it has, or remove it."
    actions = parser.add_subparsers(metavar="action", dest="action")
    actions.add_parser("status", help="where it is, what it has, how long it is kept: also without an action")
    clear = actions.add_parser("clear", help="remove all of it, also while a proxy writes it")
    clear.add_argument("--older-than", type=age, metavar="AGE", help="only what ended longer ago, like 30d or 12h")
    clear.add_argument("--dry-run", action="store_true", help="only say how much there is")


async def run_history(arguments: argparse.Namespace, context: Context) -> int:
    from proxy.cli.history.keeping import clear, status

    return (clear if arguments.action == "clear" else status)(arguments, context)
