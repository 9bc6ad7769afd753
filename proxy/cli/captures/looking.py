"""`captures list`, `show` and `clear`: lists captures, shows one or an artifact of it, and removes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from proxy.cli.ages import age
from proxy.cli.captures.selection import Head, all_of, chosen, folder_of, head_of, named, of_session, older_than
from proxy.cli.command import Command, Context, say
from proxy.cli.printable import amount, counted, cut, one_line, printable, table
from proxy.config import ConfigError
from proxy.core.sse import dump_printable
from proxy.observe.capture.layout import EVENTS
from proxy.observe.capture.reading.folder import Artifact, CaptureFolder, captures_in, measured, remove

#: Widths that keep a line on a wide terminal; the id comes last, whole, to be copied.
_SESSION, _MODEL = 14, 28
_COLUMNS = ("begun", "session", "no.", "kind", "provider", "model", "outcome", "size", "request")
_RIGHT = frozenset({"no.", "size"})


def _list_arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
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


async def _list(arguments: argparse.Namespace, context: Context) -> int:
    captures = of_session(arguments.session, all_of(folder_of(arguments, context)))
    heads = (head_of(one) for one in reversed(captures))  # no more than wanted: there may be thousands
    newest = islice((head for head in heads if _fits(head, arguments)), arguments.last)
    rows = [_row(head) for head in newest][::-1]
    if arguments.json:
        for row in rows:
            say(dump_printable(row))
    else:
        for line in table(_COLUMNS, [[_cell(name, row) for name in _COLUMNS] for row in rows], _RIGHT):
            say(line)
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


LIST = Command("list", "list captures, the newest last", _list, _list_arguments)


def _show_arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("capture", nargs="?", help="the beginning of a request id, or a path; the newest without one")
    parser.add_argument("artifact", nargs="*", help="what to print: 020, upstream-request, or a name of the list")


async def _show(arguments: argparse.Namespace, context: Context) -> int:
    capture = chosen(arguments.capture, arguments, context)
    if not arguments.artifact:
        _print_contents(capture, context.program)
        return 0
    artifacts = capture.artifacts()
    for name in arguments.artifact:
        fitting = [one for one in artifacts if _is_meant(one, name)]
        if not fitting:
            there = ", ".join(dict.fromkeys(f"{one.station}-{one.what}" for one in artifacts))
            raise ConfigError(f"no artifact {one_line(name)!r} in this capture; it has {there or 'none'}")
        _print(fitting, headings=len(fitting) > 1 or len(arguments.artifact) > 1)
    return 0


def _is_meant(artifact: Artifact, name: str) -> bool:
    file = artifact.path.name
    return name in (artifact.station, artifact.what, f"{artifact.station}-{artifact.what}", artifact.name, file)


def _print_contents(capture: CaptureFolder, program: str) -> None:
    head = head_of(capture)
    model = head.model if head.requested in ("", head.model) else f"{head.requested} as {head.model}"
    say(one_line(f"{head.kind or 'request'} {capture.request_id}: {model} of {capture.provider}"))
    say(f"session {capture.session}, number {capture.number}: {head.outcome} {head.status or ''}".rstrip())
    say(str(capture.path))
    artifacts = capture.artifacts()
    for one in artifacts:
        if not one.is_event:
            say(f"  {one.name}  {amount(one.size)}")
    events = [one for one in artifacts if one.is_event]
    for what in dict.fromkeys(one.what for one in events):
        alike = [one for one in events if one.what == what]
        size = amount(sum(one.size for one in alike))
        say(f"  {alike[0].station}-{what}  {counted(len(alike), 'file')} below {EVENTS}/, {size}")
    say(f"{program} captures show {capture.request_id} 020 prints one of them")


def _print(artifacts: Iterable[Artifact], *, headings: bool) -> None:
    for one in artifacts:
        if headings:
            say(f"--- {one.name}")
        say(printable(one.read().decode("utf-8", "backslashreplace")).rstrip("\n"))


SHOW = Command("show", "show one capture, or one of its artifacts", _show, _show_arguments)


def _clear_arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("capture", nargs="*", help="only these, by the beginning of the request id, or by path")
    parser.add_argument(
        "--older-than", type=age, metavar="AGE", help="only those begun longer ago, like 7d, 12h or 30m"
    )
    parser.add_argument("--session", metavar="ID", help="only of this session, by the beginning of its name")
    parser.add_argument("--dry-run", action="store_true", help="only say how much there is")


async def _clear(arguments: argparse.Namespace, context: Context) -> int:
    folder = folder_of(arguments, context)
    found = captures_in(folder)
    if arguments.capture:
        found = [_inside(folder, named(name, found), found) for name in dict.fromkeys(arguments.capture)]
    found = older_than(arguments.older_than, of_session(arguments.session, found))
    done = measured(found) if arguments.dry_run else remove(found)
    would = "would remove" if arguments.dry_run else "removed"
    say(f"{would} {counted(done.captures, 'capture')}, {counted(done.files, 'file')}, {amount(done.size)} in {folder}")
    if done.kept:
        say(f"kept {counted(done.kept, 'folder')} with other files, or with new ones")
    return 0


def _inside(folder: Path, capture: CaptureFolder, found: Sequence[CaptureFolder]) -> CaptureFolder:
    """The capture as `captures_in` finds it: a path may lead elsewhere, or through a link. Raises ConfigError."""
    same = next((one for one in found if one.path.name == capture.path.name and one.path.samefile(capture.path)), None)
    if same is None:
        raise ConfigError(f"{cut(str(capture.path), 200)}: not in {folder}, nothing was removed")
    return same


CLEAR = Command("clear", "remove captures", _clear, _clear_arguments)
