"""`captures clear`: removes captures, and nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from proxy.cli.captures.printable import amount, counted, cut
from proxy.cli.captures.selection import age, folder_of, named, of_session, older_than
from proxy.cli.command import Command, Context, say
from proxy.config import ConfigError
from proxy.observe.capture.reading.folder import CaptureFolder, captures_in
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
        found = [_inside(folder, named(name, found), found) for name in dict.fromkeys(arguments.capture)]
    found = older_than(arguments.older_than, of_session(arguments.session, found))
    done = measured(found) if arguments.dry_run else remove(found)
    would = "would remove" if arguments.dry_run else "removed"
    say(f"{would} {counted(done.captures, 'capture')}, {counted(done.files, 'file')}, {amount(done.size)} in {folder}")
    if done.kept:
        say(f"{counted(done.kept, 'folder')} stayed: not empty, with something else or with what was written just now")
    return 0


def _inside(folder: Path, capture: CaptureFolder, found: Sequence[CaptureFolder]) -> CaptureFolder:
    """The same, as it was found: a path may lead elsewhere, or through a link. Raises ConfigError."""
    same = next((one for one in found if one.path.name == capture.path.name and one.path.samefile(capture.path)), None)
    if same is None:
        raise ConfigError(f"{cut(str(capture.path), 200)}: not in {folder}, nothing was removed")
    return same


CLEAR = Command("clear", "remove captures", _run, _arguments)
