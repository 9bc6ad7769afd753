"""Finds the project a client works in: a working directory in the prompt, then a name from the file system.

`find_working_directory` is pure and quick enough for the event loop. `project_name` touches the file system: run it
in a thread, and only when a recorder wants it.

The directory is text out of a prompt and so not to be trusted: it is only ever looked at for a `.git`, nothing is
shown but one path component, and a network path is not followed.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

from proxy.core.hiding.texts import redacted_text

#: Labels of a working-directory line; clients changed the wording over time.
LABELS = ("Primary working directory:", "Working directory:", "Current working directory:")

#: Characters of one request that are looked at. System prompts have some 10^4 to 10^5; at this size the search takes
#: well under a millisecond.
MAX_SCANNED = 512 * 1024

#: Cost of looking at one block, so that a million empty blocks end as well.
BLOCK_COST = 32

#: Contents within contents; a tool result inside a message is the second.
MAX_NESTING = 8

#: A longer path exists on no system we know (Linux: PATH_MAX).
MAX_PATH = 4_096

#: Directories on the way up to the root.
MAX_ANCESTORS = 64

#: A file-name component is at most this long nearly everywhere (NAME_MAX).
MAX_NAME = 255

_LINE_MARK = "orking directory:"  # what all labels have in common
#: One of these is in the bytes of a body that has a working directory, however its JSON is written: some programs
#: escape `<` and `>`.
DIRECTORY_WORDS = (_LINE_MARK.encode(), b"cwd")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def find_working_directory(request: Mapping[str, Any]) -> str | None:
    """The path of the first working-directory line in `system`, else in `messages` from the newest to the oldest; of a
    Responses body in `instructions` and `input`.

    A line is `Working directory: /projects/example`, also with `Primary` or `Current` before it or as a `- ` list item;
    `<cwd>/projects/example</cwd>` counts too. Unexpected shapes are passed over.
    """
    budget = MAX_SCANNED
    for text in _texts(request):
        path = _path_in(text, budget)
        if path is not None:
            return path
        budget -= len(text) + BLOCK_COST
        if budget <= 0:
            return None
    return None


def _texts(request: Mapping[str, Any]) -> Iterator[str]:
    yield from _texts_of(request.get("system"), 0)
    yield from _texts_of(request.get("instructions"), 0)
    for name in ("messages", "input"):
        messages = request.get(name)
        for message in reversed(messages) if isinstance(messages, list) else ():
            yield from _texts_of(message, 0)


def _texts_of(value: Any, depth: int) -> Iterator[str]:
    """The texts of a string, an array, a block with `text`, a block or message with `content`.

    Every value gives at least one text, if an empty one: that is what the budget counts.
    """
    if isinstance(value, str):
        yield value
        return
    yield ""
    if depth > MAX_NESTING:
        return
    if isinstance(value, list):
        for item in value:
            yield from _texts_of(item, depth + 1)
    elif isinstance(value, dict):
        for key in ("text", "content"):
            if key in value:
                yield from _texts_of(value[key], depth + 1)


def _path_in(text: str, limit: int) -> str | None:
    """The first path among the first `limit` characters."""
    line = _labelled(text, limit)
    element = _element(text, limit)
    found = [candidate for candidate in (line, element) if candidate]
    return min(found)[1] if found else None


def _labelled(text: str, limit: int) -> tuple[int, str] | None:
    """(position, path) of the first labelled line. Looks at each line once, however often the label is in it."""
    at = text.find(_LINE_MARK, 0, limit)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at, limit)
        end = min(len(text), limit) if end < 0 else end
        path = _path_of_line(text[start:end])
        if path:
            return at, path
        at = text.find(_LINE_MARK, end, limit)
    return None


def _path_of_line(line: str) -> str | None:
    line = line.strip().removeprefix("- ").lstrip()
    for label in LABELS:
        if line.startswith(label):
            path = line.removeprefix(label).strip()
            return path if _is_path(path) else None
    return None


def _is_path(text: str) -> bool:
    """Whether it is an absolute path, and no words of a prompt."""
    whole = text.startswith("/") or _WINDOWS.match(text) is not None
    return whole and len(text) <= MAX_PATH and "\n" not in text


def _element(text: str, limit: int) -> tuple[int, str] | None:
    """(position, path) of the first `<cwd>` element with something on one line in it."""
    at = text.find("<cwd>", 0, limit)
    while at >= 0:
        start = at + len("<cwd>")
        end = text.find("<", start, min(limit, start + MAX_PATH))  # not "</cwd>": many openings stay linear
        path = text[start:end].strip() if end >= 0 and text.startswith("</cwd>", end) else ""
        if _is_path(path):
            return at, path
        at = text.find("<cwd>", start, limit)
    return None


def project_name(path: str) -> str | None:
    """The name to show for a working directory: of its repository, else its last component; None if it has none.

    In a linked worktree it is the main repository's. Blocking.
    """
    pure: PurePath = PureWindowsPath(path) if _WINDOWS.match(path) else PurePosixPath(path)
    return _shown(_repository_name(path) or pure.name)


def _shown(name: str) -> str | None:
    """Removes characters that could move a cursor, and what looks like a key."""
    shown = "".join(c if c.isprintable() else "?" for c in name[:MAX_NAME]).strip()
    return redacted_text(shown) or None


def _repository_name(path: str) -> str | None:
    """The name of the nearest repository; None without one, and for paths that are not looked at.

    A relative path would be taken from our own directory. A network path (`//host/share`) makes some systems sign in
    at that host.
    """
    start = Path(path)
    if not path[:2].strip("/\\") or not start.is_absolute():
        return None
    for directory in [start, *start.parents][:MAX_ANCESTORS]:
        try:
            mode = (directory / ".git").stat().st_mode
        except (OSError, ValueError):  # none here, or not for us to see; ValueError: a NUL in the path
            continue
        if stat.S_ISDIR(mode):
            return directory.name
        if stat.S_ISREG(mode):
            return _main_repository(directory) or directory.name
    return None


def _main_repository(directory: Path) -> str | None:
    """The name above the `.git` that a file `gitdir: /main/.git/worktrees/branch` points into."""
    try:
        with (directory / ".git").open(encoding="utf-8", errors="replace") as file:
            line = file.read(MAX_PATH).split("\n", 1)[0]
    except OSError:
        return None
    if not line.startswith("gitdir:"):
        return None
    target = _normal(directory / line.removeprefix("gitdir:").strip())
    enclosing = next((p for p in [target, *target.parents] if p.name == ".git"), None)
    return enclosing.parent.name or None if enclosing else None


def _normal(path: Path) -> Path:
    """Resolves `..` by spelling alone: the target need not exist here, as in a container that mounts one worktree."""
    parts: list[str] = []
    for part in path.parts[1:]:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
    return Path(path.anchor, *parts)
