"""`captures show`: one capture, or some of its artifacts."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from proxy.cli.captures.printable import amount, counted, one_line, printable
from proxy.cli.captures.selection import chosen, head_of
from proxy.cli.command import Command, Context, say
from proxy.config import ConfigError
from proxy.observe.capture.layout import EVENTS
from proxy.observe.capture.reading.folder import Artifact, CaptureFolder


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("capture", nargs="?", help="the beginning of a request id, or a path; the newest without one")
    parser.add_argument("artifact", nargs="*", help="what to print: 020, upstream-request, or a name of the list")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    capture = chosen(arguments.capture, arguments, context)
    if not arguments.artifact:
        _print_contents(capture, context.program)
        return 0
    artifacts = capture.artifacts()
    for name in arguments.artifact:
        fitting = [one for one in artifacts if _fits(one, name)]
        if not fitting:
            there = ", ".join(dict.fromkeys(f"{one.station}-{one.what}" for one in artifacts))
            raise ConfigError(f"no artifact {one_line(name)!r} in this capture; it has {there or 'none'}")
        _print(fitting, headings=len(fitting) > 1 or len(arguments.artifact) > 1)
    return 0


def _fits(artifact: Artifact, name: str) -> bool:
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


SHOW = Command("show", "show one capture, or one of its artifacts", _run, _arguments)
