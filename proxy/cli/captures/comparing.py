"""`captures diff`: finds the first difference between the prompts of two requests."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.cli.captures.selection import Head, all_of, chosen, folder_of, head_of
from proxy.cli.command import Command, Context, say
from proxy.cli.printable import counted, cut, one_line
from proxy.config import ConfigError
from proxy.errors import PROGRAM
from proxy.observe.capture.layout import CONVERTED, UPSTREAM_REQUEST
from proxy.observe.capture.reading.diff import Change, Comparison, cached_input, common_length, compare, counts
from proxy.observe.capture.reading.folder import CaptureFolder, captures_of

#: Any station of what a client sent: only its number counts.
RECEIVED = "010"

#: Changes that are printed without `--all`.
SHOWN = 40
_VALUE = 60
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}

#: The member that identifies the wire of a body.
_WIRES = ("messages", "input", "run_request")


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("older", nargs="?", metavar="A", help="the older capture; alone it is compared with the next")
    parser.add_argument("newer", nargs="?", metavar="B", help="without both: the newest two of one conversation")
    parser.add_argument("--received", action="store_true", help="what the client sent, not what went to the upstream")
    parser.add_argument("--all", action="store_true", help="do not shorten the list of changes")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two bodies of one wire, and their title."""

    what: str
    older: Mapping[str, Any]
    newer: Mapping[str, Any]


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    older, newer = _chosen(arguments, context)
    pair = _received(older, newer) if arguments.received else _sent(older, newer)
    for name, head in (("A", older), ("B", newer)):
        about = f"{head.kind or 'request'} of {head.capture.provider}, {head.model}"
        say(one_line(f"{name}  {head.capture.session}/{head.capture.path.name}: {about}{_cached(head)}"))
    say(f"compared: {pair.what}")
    _print(compare(pair.older, pair.newer), None if arguments.all else SHOWN)
    return 0


# -- choosing two captures


def _chosen(arguments: argparse.Namespace, context: Context) -> tuple[Head, Head]:
    if arguments.older is None:
        return _newest_two(all_of(folder_of(arguments, context)))
    older = head_of(chosen(arguments.older, arguments, context))
    if arguments.newer is not None:
        return older, head_of(chosen(arguments.newer, arguments, context))
    place, session = _place(older.capture), older.capture.path.parent
    found = _nearest(older, (head_of(one) for one in captures_of(session) if _place(one) > place))
    if found is None:
        raise ConfigError("nothing follows it in its session with the same kind, provider, model and agent: name two")
    return older, found


def _newest_two(captures: Sequence[CaptureFolder]) -> tuple[Head, Head]:
    """The newest request that continues another one, and that one."""
    sessions: dict[str, list[Head]] = {}
    for capture in reversed(captures):
        later = sessions.setdefault(capture.session, [])
        head = head_of(capture)
        found = _nearest(head, reversed(later))
        if found is not None:
            return head, found
        later.append(head)
    raise ConfigError("no two captures of one session have the same kind, provider, model and agent: name two")


def _place(capture: CaptureFolder) -> tuple[int, float]:
    return capture.number, capture.begun_s


def _nearest(head: Head, others: Iterable[Head]) -> Head | None:
    """The first that may continue the conversation: agents of a session run side by side, and so do small models that
    write its title."""
    return next((one for one in others if _conversation(one) == _conversation(head)), None)


def _conversation(head: Head) -> tuple[str, str, str, str]:
    return head.kind, head.capture.provider, head.model, head.agent


# -- choosing their bodies


def _sent(older: Head, newer: Head) -> _Pair:
    """The bodies of the last attempts, where they have the whole prompts."""
    bodies = [one.capture.read_object(UPSTREAM_REQUEST) for one in (older, newer)]
    reason = _unfit(bodies)
    if not reason:
        return _Pair("what went to the upstream (020)", *bodies)
    pair = _received(older, newer)
    return _Pair(f"{pair.what}, because {reason}", pair.older, pair.newer)


def _unfit(bodies: Sequence[Mapping[str, Any]]) -> str:
    """Why the bodies say little about the prompts; "" when they do not."""
    wires = [_wire(body) for body in bodies]
    if None in wires:
        return "not both have a request to the upstream"
    if any(body.get("previous_response_id") for body in bodies):
        return "only the new part was sent; the connection already had the rest"
    return "" if wires[0] == wires[1] else "the two went over different wires"


def _wire(body: Mapping[str, Any]) -> str | None:
    return next((name for name in _WIRES if body.get(name) is not None), None)


def _received(older: Head, newer: Head) -> _Pair:
    """The bodies from the client, or their translations where the routes differ."""
    bodies = [one.capture.read_object(RECEIVED) for one in (older, newer)]
    if older.kind != newer.kind:
        bodies = [one.capture.read_object(CONVERTED) or body for one, body in zip((older, newer), bodies, strict=True)]
    if not all(bodies):
        raise ConfigError(f"not both captures have a request that can be read: `{PROGRAM} captures show` lists them")
    return _Pair("what the client sent (010)", *bodies)


# -- output


def _cached(head: Head) -> str:
    found = cached_input(head.capture)
    return f", {found.cached:,} of {found.tokens:,} input tokens from the cache" if found else ""


def _print(found: Comparison, most: int | None) -> None:
    say(f"{'':<14} {'A':>21} {'B':>21} {'same from the front':>21}")  # 80 columns
    for part, extents in found.parts.items():
        if any(extent.blocks for extent in extents[1:]):
            same, older, newer = (f"{counted(one.blocks, 'block')}, {one.size:,} B" for one in extents)
            say(f"  {part:<12} {older:>21} {newer:>21} {same:>21}")
    share = f"{100 * found.same.size // found.newer.size} % of B" if found.newer.size else "all of B"
    say(f"common prefix: {counted(found.same.blocks, 'block')}, {found.same.size:,} bytes, {share}")
    _print_first(found)
    _print_changes("then" if found.first else "after it", found.changes, most)
    if found.settings:
        _print_changes("settings", found.settings, most, values=True)


def _print_first(found: Comparison) -> None:
    first = found.first
    if first is None:
        whole = found.older.blocks <= found.newer.blocks
        say("all of A is the beginning of B: nothing of it has changed" if whole else "B is the beginning of A")
        return
    at = f"byte {found.same.size + first.offset:,} of the prompt, {first.offset:,} of the block"
    say(one_line(f"first difference: {first.place} ({first.newer.kind}), {at}"))
    for name, excerpt in zip("AB", first.excerpts, strict=True):
        say(f"  {name} {one_line(excerpt)}")


def _print_changes(title: str, changes: Sequence[Change], most: int | None, *, values: bool = False) -> None:
    numbers = ", ".join(f"{number} {kind}" for kind, number in counts(changes).items() if number)
    say(f"{title}: {numbers or 'nothing'}")
    for change in changes[:most]:
        say("  " + one_line(f"{_SIGNS[change.kind]} {_setting(change) if values else _block(change)}"))
    if most is not None and len(changes) > most:
        say(f"  … {len(changes) - most} more: --all")


def _block(change: Change) -> str:
    block = change.newer or change.older
    sizes = [f"{one.size:,}" for one in (change.older, change.newer) if one is not None]
    return f"{block.place} {block.kind}, {' -> '.join(sizes)} B" if block else ""


def _setting(change: Change) -> str:
    texts = [one.text for one in (change.older, change.newer) if one is not None]
    start = max(0, common_length(texts[0], texts[-1]) - _VALUE // 3) if len(texts) > 1 else 0
    shown = [cut(("…" if start else "") + text[start:], _VALUE) for text in texts]
    block = change.newer or change.older
    return f"{block.place}: {' -> '.join(shown)}" if block else ""


DIFF = Command("diff", "show where the prompts of two requests part", _run, _arguments)
