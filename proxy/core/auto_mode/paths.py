"""Paths as shells and rules write them: where they lead, and whether a pattern covers them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from proxy.core.auto_mode.shell import UNKNOWN

#: Longer words are no paths.
MAX_PATH = 4096
#: Parts of a pattern of paths; more than this is none that anybody wrote.
MAX_PARTS = 64
#: What stands for a home whose place is not known.
NO_HOME = "/~"

_HOMES = re.compile(r"(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%|\$env:(?:USERPROFILE|HOME))(?=/|$)", re.IGNORECASE)


def located(word: str, *, home: str, cwd: str) -> str | None:
    """The absolute path behind a word; None when it hangs on what nobody knows.

    >>> located("~/.ssh/../x", home="/home/me", cwd=""), located("$DIR/x", home="/h", cwd="/")
    ('/home/me/x', None)
    """
    if not word or len(word) > MAX_PATH or UNKNOWN in word:
        return None
    path = _HOMES.sub(lambda _: home or NO_HOME, word.replace("\\", "/"), count=1)
    if "$" in path:
        return None
    if not path.startswith("/") and not re.match(r"[A-Za-z]:", path):
        if not cwd:
            return None
        path = posixpath.join(cwd, path)
    return posixpath.normpath(re.sub(r"^/{2,}", "/", path))


def fits(pattern: str, text: str) -> bool:
    """Whether a text is what a pattern says, in which `*` stands for anything. As long as both together.

    >>> fits("git push *", "git push origin"), fits("git *push", "git pus"), fits("a", "ab")
    (True, False, False)
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    last = rest.pop()
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    place, end = len(first), len(text) - len(last)
    for piece in rest:
        found = text.find(piece, place, end)
        if found < 0:
            return False
        place = found + len(piece)
    return True


def covers(pattern: str, path: str) -> bool:
    """Whether a pattern of absolute paths names a path or a folder above it; `**` stands for any number of folders.

    >>> covers("/h/**/*.env", "/h/a/b/.env"), covers("/h/.ssh", "/h/.ssh/id"), covers("/h/*", "/x")
    (True, True, False)
    """
    wanted, parts = pattern.strip("/").split("/"), path.strip("/").split("/")
    if len(wanted) > MAX_PARTS or len(parts) > MAX_PARTS:
        return False
    return _covers(wanted, parts)


def _covers(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Row by row: `reached[n]` tells whether the pattern so far is the first n parts."""
    reached = [True, *[False] * len(parts)]
    for place, piece in enumerate(wanted):
        if piece == "**":
            first = reached.index(True) if True in reached else len(reached)
            # at its end it means what is in the folder, not the folder itself
            first += place == len(wanted) - 1
            reached = [number >= first for number in range(len(reached))]
        else:
            reached = [False, *[before and fits(piece, part) for before, part in zip(reached, parts, strict=False)]]
    return any(reached)
