"""`captures list`."""

from __future__ import annotations

import argparse
from datetime import datetime
from itertools import islice
from typing import Any

from proxy.cli.captures.printable import amount, cut
from proxy.cli.captures.selection import Head, age, all_of, folder_of, head_of, of_session
from proxy.cli.command import Command, Context, say
from proxy.core.sse import dump_printable

#: Widths that keep a line on a wide terminal; the id comes last and is whole, since one copies it.
_SESSION, _MODEL = 14, 28
_COLUMNS = ("begun", "session", "no.", "kind", "provider", "model", "outcome", "size", "request")
_RIGHT = frozenset({"no.", "size"})


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("--session", metavar="ID", help="only of this session, by the beginning of its name")
    parser.add_argument("--provider", metavar="LABEL", help="only of this provider")
    parser.add_argument("--model", metavar="NAME", help="only of models that contain this")
    parser.add_argument("--kind", metavar="KIND", help="messages, count_tokens, responses or chat_completions")
    parser.add_argument("--failed", action="store_true", help="only those that were not completed")
    parser.add_argument("--newer-than", type=age, metavar="AGE", help="only those begun within this time, like 30m")
    parser.add_argument("--last", type=_positive, metavar="N", help="only the newest N of them")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with the path")


def _positive(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text[:9]) == int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1")
    return int(text)


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    captures = of_session(arguments.session, all_of(folder_of(arguments, context)))
    heads = (head_of(one) for one in reversed(captures))  # no more than are asked for: there may be thousands
    newest = islice((head for head in heads if _fits(head, arguments)), arguments.last)
    rows = [_row(head) for head in newest][::-1]
    if arguments.json:
        for row in rows:
            say(dump_printable(row))
    else:
        _print_table([[_cell(name, row) for name in _COLUMNS] for row in rows])
    return 0


def _fits(head: Head, arguments: argparse.Namespace) -> bool:
    if arguments.newer_than is not None and head.capture.begun_s < datetime.now().timestamp() - arguments.newer_than:
        return False
    return (
        arguments.provider in (None, head.capture.provider)
        and (arguments.model or "") in f"{head.model} {head.requested}"
        and arguments.kind in (None, head.kind)
        and (head.failed or not arguments.failed)
    )


def _row(head: Head) -> dict[str, Any]:
    capture = head.capture
    return {
        "begun": datetime.fromtimestamp(capture.begun_s).isoformat(" ", "seconds"),
        "session": capture.session,
        "no.": capture.number,
        "kind": head.kind,
        "provider": capture.provider,
        "model": head.model,
        "outcome": head.outcome,
        "status": head.status,
        "size": sum(one.size for one in capture.artifacts()),
        "request": capture.request_id,
        "path": str(capture.path),
    }


def _cell(name: str, row: dict[str, Any]) -> str:
    if name == "size":
        return amount(row[name])
    if name == "outcome":
        return f"{row['status'] or ''} {row[name]}".strip()
    return cut(str(row[name]), {"session": _SESSION, "model": _MODEL}.get(name, 200))


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(_COLUMNS, *rows, strict=True)]
    for row in (_COLUMNS, *rows):
        cells = zip(row, widths, _COLUMNS, strict=True)
        say("  ".join(c.rjust(width) if name in _RIGHT else c.ljust(width) for c, width, name in cells).rstrip())


LIST = Command("list", "list captures, the newest last", _run, _arguments)
