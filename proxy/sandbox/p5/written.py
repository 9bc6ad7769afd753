"""Checks that a file which the service had written comes back unchanged when the service reads it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from proxy.sandbox.p5.asked import EXEC, ServerRequest
from proxy.sandbox.p5.execs import BACKGROUND, READS, SHELLS, WRITE, written

#: Kinds that change no file: reads, grep, ls, diagnostics, context, a list of resources, fetch.
_HARMLESS = frozenset({*READS, 5, 8, 9, 10, 17, 20})

#: Kinds that change the named file only: write, delete.
_OF_A_FILE = frozenset({WRITE, 4})


def changed(asked: Sequence[ServerRequest], read: ServerRequest) -> str | None:
    """Describes how a file that was read differs from what was last written into it. None when it does not, when only
    a part was read, or when another request may have changed it."""
    success = read.answers[-1].sub(read.number, 1) if read.number in READS and read.answers else None
    if success is None or 4 in read.args or 5 in read.args or success.number(6) or 7 in success:
        return None
    path = _file_of(read)
    writes = [one for one in asked if one.number == WRITE and _file_of(one) == path and _is_over(one, read.began)]
    last = max(writes, key=lambda one: one.ended or 0, default=None)
    if last is None or not last.outcome.ok:
        return None
    if any(one is not last and _may_change(one, path) and not _is_over(one, last.began) for one in asked):
        return None
    given, wanted = read.outcome.text.encode(errors="surrogateescape"), written(last.args)
    if given == wanted:
        return None
    place = next((n for n, (one, other) in enumerate(zip(given, wanted, strict=False)) if one != other), -1)
    where = min(len(given), len(wanted)) if place < 0 else place
    return f"{len(given)} bytes of {path!r} differ at {where} from the {len(wanted)} that {last.name} wrote"


def _file_of(one: ServerRequest) -> str:
    return posixpath.normpath(one.args.text(1)) if one.family == EXEC else ""


def _may_change(one: ServerRequest, path: str) -> bool:
    if one.family != EXEC or one.number in _HARMLESS:
        return False
    return one.number not in _OF_A_FILE or _file_of(one) == path


def _is_over(one: ServerRequest, before: int) -> bool:
    """Whether a request has come to its end before that place. A process in the background never does, nor does what
    was withdrawn."""
    goes_on = one.number == BACKGROUND or (one.number in SHELLS and (one.args.number(11) or _was_moved(one)))
    return one.ended is not None and one.ended < before and not (goes_on and one.outcome.ok)


def _was_moved(one: ServerRequest) -> bool:
    """Whether a command was moved to the background."""
    return any(answer.has(14, 7) for answer in one.answers)
