"""`captures clear`: removes captures, and nothing else."""

from __future__ import annotations

import argparse

from proxy.cli.captures.printable import amount, counted
from proxy.cli.captures.selection import age, folder_of, named, of_session, older_than
from proxy.cli.command import Command, Context, say
from proxy.observe.capture.reading.folder import captures_in
from proxy.observe.capture.reading.removal import measured, remove


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("capture", nargs="*", help="only these, by the beginning of the request id, or by path")
    parser.add_argument(
        "--older-than", type=age, metavar="AGE", help="only those begun longer ago, like 7d, 12h or 30m"
    )
    parser.add_argument("--session", metavar="ID", help="only of this session, by the beginning of its name")
    parser.add_argument("--dry-run", action="store_true", help="only say how much there is")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    folder = folder_of(arguments, context)
    found = captures_in(folder)
    if arguments.capture:
        found = [named(name, found) for name in dict.fromkeys(arguments.capture)]
    found = older_than(arguments.older_than, of_session(arguments.session, found))
    done = measured(found) if arguments.dry_run else remove(found)
    would = "would remove" if arguments.dry_run else "removed"
    say(f"{would} {counted(done.captures, 'capture')}, {counted(done.files, 'file')}, {amount(done.size)} in {folder}")
    if done.kept:
        say(f"{counted(done.kept, 'folder')} stayed: there is something in it that is no capture")
    return 0


CLEAR = Command("clear", "remove captures", _run, _arguments)
