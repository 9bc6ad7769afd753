"""Resolves paths as shells and rules write them, and matches them with patterns."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from proxy.core.auto_mode.shell import UNKNOWN

#: Longest path.
MAX_PATH = 4096
#: Maximum number of parts of a path or pattern.
MAX_PARTS = 64
#: Replaces an unknown home.
NO_HOME = "/~"

_HOMES = re.compile(r"(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%|\$env:(?:USERPROFILE|HOME))(?=/|$)", re.IGNORECASE)


def located(word: str, *, home: str, cwd: str) -> str | None:
    """The absolute path that a word means; None if it depends on something unknown.

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
    """Whether a text matches a pattern, in which `*` means anything. Takes time linear in both.

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
    """Whether a pattern of absolute paths matches a path or a folder above it; `**` means any number of folders.

    >>> covers("/h/**/*.env", "/h/a/b/.env"), covers("/h/.ssh", "/h/.ssh/id"), covers("/h/*", "/x")
    (True, True, False)
    """
    wanted, parts = pattern.strip("/").split("/"), path.strip("/").split("/")
    if len(wanted) > MAX_PARTS or len(parts) > MAX_PARTS:
        return False
    return _covers(wanted, parts)


def _covers(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Matches piece by piece: `reached[n]` is whether the pattern so far matches the first n parts."""
    reached = [True, *[False] * len(parts)]
    for place, piece in enumerate(wanted):
        if piece == "**":
            first = reached.index(True) if True in reached else len(reached)
            # at the end of a pattern it means the contents of the folder, not the folder itself
            first += place == len(wanted) - 1
            reached = [number >= first for number in range(len(reached))]
        else:
            reached = [False, *[before and fits(piece, part) for before, part in zip(reached, parts, strict=False)]]
    return any(reached)
