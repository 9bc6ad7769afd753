"""Checks what a client found, and words it for tests: the successes of searches and of folders."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from proxy.sandbox.p5.shapes import BYTES, NUMBER, TEXT, Shape
from proxy.sandbox.wires.connect.protobuf import Message

_UNION: Shape = {
    1: {1: {1: TEXT, 2: NUMBER}, **dict.fromkeys(range(2, 8), NUMBER)},
    2: {1: TEXT, **dict.fromkeys(range(2, 7), NUMBER)},
    3: {1: {1: TEXT, 2: {1: NUMBER, 2: TEXT, 3: NUMBER, 4: NUMBER}}, **dict.fromkeys(range(2, 8), NUMBER)},
}
SEARCH: Shape = {1: TEXT, 2: TEXT, 3: TEXT, 4: {1: TEXT, 2: _UNION}, 5: _UNION}

_FOLDER: dict[int, str | Shape] = {1: TEXT, 3: {1: TEXT, 2: BYTES}, 4: NUMBER, 5: {1: TEXT, 2: NUMBER}, 6: NUMBER}
_FOLDER[2] = _FOLDER
TREE: Shape = {1: _FOLDER}


def _texts(message: Message, place: int) -> list[str]:
    """The elements of a repeated text."""
    return [one.decode(errors="replace") for one in message.fields.get(place, ()) if isinstance(one, bytes)]


def _unions(said: Message) -> list[Message]:
    """What each workspace has, and the open editor."""
    return [*(entry.sub(2) or Message(b"") for entry in said.all(4)), *said.all(5)]


class _Mode(NamedTuple):
    """A form of a search's result: its arm, its check, and its lines of words."""

    arm: int
    check: Callable[[Message, Message], Iterator[str]]
    lines: Callable[[Message], Iterator[str]]


def odd_search(args: Message, said: Message) -> Iterator[str]:
    """The faults of a search's success: its mode, names, numbers and totals."""
    asked, mode = args.text(4), said.text(3)
    if mode not in _MODES or (asked in _MODES and mode != asked):
        yield f"has the output_mode {mode!r}" + (f", not {asked!r}" if asked in _MODES else "")
        return
    if len({entry.text(1) for entry in said.all(4)}) < len(said.all(4)):
        yield "has a workspace twice"
    for union in _unions(said):
        arm, check, _ = _MODES[mode]
        found = union.sub(arm)
        if found is None or len(union.fields) != 1:
            yield f"has the arms {list(union.fields)} for {mode!r}"
        else:
            yield from check(args, found)


def search_words(said: Message) -> str:
    """What was found: `file:line:content`, `file-line-content` for a line around it, `file`, or `file:count`."""
    found = [(union.sub(mode.arm), mode) for union in _unions(said) for mode in _MODES.values()]
    return "\n".join(line for one, mode in found if one is not None for line in mode.lines(one))


def _odd_counts(args: Message, found: Message) -> Iterator[str]:
    rows = found.all(1)
    yield from _odd_names([row.text(1) for row in rows])
    if not all(row.number(2) for row in rows):
        yield "counts a file without a match"
    yield from _odd_totals(found, {2: len(rows), 3: sum(row.number(2) for row in rows)}, cut=range(4, 8))
    yield from _too_many(args, len(rows))


def _odd_files(args: Message, found: Message) -> Iterator[str]:
    names = _texts(found, 1)
    yield from _odd_names(names)
    yield from _odd_totals(found, {2: len(names)}, cut=range(3, 7))
    yield from _too_many(args, len(names))


def _odd_content(args: Message, found: Message) -> Iterator[str]:
    files = found.all(1)
    yield from _odd_names([file.text(1) for file in files])
    for file in files:
        yield from _odd_lines(args, file)
    lines = [line for file in files for line in file.all(2)]
    matched = sum(not line.number(4) for line in lines)
    yield from _odd_totals(found, {2: len(lines), 3: matched}, cut=range(4, 8))
    yield from _too_many(args, matched)


def _odd_lines(args: Message, file: Message) -> Iterator[str]:
    lines = file.all(2)
    numbers = [line.number(1) for line in lines]
    if not all(0 < number < 1 << 31 for number in numbers):
        yield f"has the line numbers {numbers}"
    elif not numbers or sorted(set(numbers)) != numbers:
        yield f"has the line numbers {numbers} of one file"
    if any(line.number(4) for line in lines) and not any(args.number(place) for place in (5, 6, 7)):
        yield "has a line of context, which was not asked for"
    if any(b"\n" in line.bytes(2) for line in lines) and not args.number(11):
        yield "has a line with a line break"


def _odd_names(names: list[str]) -> Iterator[str]:
    if not all(names):
        yield "has a file without a name"
    if len(set(names)) < len(names):
        yield "has a file twice"


def _odd_totals(found: Message, listed: dict[int, int], cut: Iterable[int]) -> Iterator[str]:
    """Totals are those of what is listed; where something is left out (a field of `cut`), they may be larger."""
    is_cut = any(found.number(place) for place in cut)
    for place, count in listed.items():
        total = found.number(place)
        if total < count or (total > count and not is_cut):
            yield f"has {total} in field {place}, and lists {count}"


def _too_many(args: Message, count: int) -> Iterator[str]:
    if 0 < args.number(10) < count:
        yield f"lists {count}, but the head_limit is {args.number(10)}"


def _content_lines(found: Message) -> Iterator[str]:
    for file in found.all(1):
        for line in file.all(2):
            mark = "-" if line.number(4) else ":"
            yield f"{file.text(1)}{mark}{line.number(1)}{mark}{line.text(2)}"


_MODES = {
    "count": _Mode(1, _odd_counts, lambda found: (f"{row.text(1)}:{row.number(2)}" for row in found.all(1))),
    "files_with_matches": _Mode(2, _odd_files, lambda found: iter(_texts(found, 1))),
    "content": _Mode(3, _odd_content, _content_lines),
}


_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


def _plain(path: str) -> str:
    return posixpath.normpath(path.rstrip("/\\") or "/")


def odd_tree(args: Message, said: Message) -> Iterator[str]:
    """The faults of a folder's success: its root, names and totals, and entries that were to be left out."""
    root = said.sub(1)
    path, asked = (root or Message(b"")).text(1), args.text(1)
    if root is None or not _ABSOLUTE.match(path) or (_ABSOLUTE.match(asked) and _plain(path) != _plain(asked)):
        yield f"has the root {path!r}, not {asked!r}"
        return
    patterns = [pattern.removeprefix("**/").removesuffix("/") for pattern in _texts(args, 2)]
    yield from _odd_folder(root, [pattern for pattern in patterns if "/" not in pattern])


def _odd_folder(folder: Message, ignored: list[str]) -> Iterator[str]:
    path = folder.text(1)
    names = [*_names_of(folder), *_files_of(folder)]
    for name, count in Counter(names).items():
        if not name or _separator(path) in name:
            yield f"has the name {name!r} in {path!r}"
        elif count > 1:
            yield f"has {name!r} twice in {path!r}"
        elif any(fnmatchcase(name, pattern) for pattern in ignored):
            yield f"has {name!r}, which was to be ignored"
    direct, total = len(folder.all(3)), folder.number(6)
    if total < direct or (_is_whole(folder) and total not in (direct, _count_files(folder))):
        yield f"has {total} files in {path!r}, and lists {direct}"
    for inner in folder.all(2):
        yield from _odd_folder(inner, ignored)


def _separator(path: str) -> str:
    return "/" if "/" in path else "\\"


def _names_of(folder: Message) -> Iterator[str]:
    """The names of the folders in a folder; the whole path of one that is elsewhere."""
    path = folder.text(1)
    separator = _separator(path)
    parent = path.removesuffix(separator) + separator
    return (inner.text(1).removeprefix(parent).removesuffix(separator) for inner in folder.all(2))


def _files_of(folder: Message) -> Iterator[str]:
    return (file.text(1) for file in folder.all(3))


def _is_whole(folder: Message) -> bool:
    """Whether everything under a folder is listed."""
    return bool(folder.number(4)) and all(map(_is_whole, folder.all(2)))


def _count_files(folder: Message) -> int:
    return len(folder.all(3)) + sum(map(_count_files, folder.all(2)))


def tree_words(said: Message) -> str:
    """The names, one a line: each folder with a slash, followed by what is in it, then the files."""
    return "\n".join(_tree_lines(said.sub(1) or Message(b""), ""))


def _tree_lines(folder: Message, above: str) -> Iterator[str]:
    for name, inner in zip(_names_of(folder), folder.all(2), strict=True):
        yield f"{above}{name}/"
        yield from _tree_lines(inner, f"{above}{name}/")
    yield from (above + name for name in _files_of(folder))
