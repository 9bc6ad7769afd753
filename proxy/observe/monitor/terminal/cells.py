"""Cleans, measures, cuts and wraps texts for the cells of a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

ELLIPSIS = "…"
#: Characters of a foreign text that are looked at.
MAX_TEXT = 4_000


class Span(NamedTuple):
    """A text in one style. `role` is a name of `palette`; `chosen`: of the selected row."""

    text: str
    role: str = ""
    chosen: bool = False


Line = tuple[Span, ...]


@lru_cache(maxsize=4_096)
def clean(text: str) -> str:
    """The text without anything that a terminal would obey, or would draw in a width other than counted here.

    >>> clean("a\\x1b[31mb"), clean("one\\ntwo")
    ('a?[31mb', 'one two')
    """
    text = text[:MAX_TEXT]
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, unicodedata.normalize("NFC", text)))


def _shown(char: str) -> str:
    if char.isspace():
        return " "
    if unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f":  # joiners and selectors: terminals differ
        return ""
    return char if char.isprintable() and not "\u1160" <= char <= "\u11ff" else "?"


@lru_cache(maxsize=4_096)
def _cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def width_of(text: str) -> int:
    """The number of cells of a clean text."""
    return len(text) if text.isascii() else _wide(text)


@lru_cache(maxsize=4_096)
def _wide(text: str) -> int:
    return sum(map(_cells, text))


def cut(text: str, width: int) -> str:
    """A clean text in at most `width` cells; a cut one ends with an ellipsis."""
    if width_of(text) <= width:
        return text
    return _head(text, width - 1) + ELLIPSIS if width > 0 else ""


def _head(text: str, width: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += _cells(char)
        if used > width:
            return text[:index]
    return text


@lru_cache(maxsize=4_096)
def fit(text: str, width: int, *, right: bool = False) -> str:
    """Any text in exactly `width` cells."""
    text = cut(clean(text), width)
    blank = " " * (width - width_of(text))
    return blank + text if right else text + blank


def wrap(text: str, width: int) -> list[str]:
    """A text in lines of at most `width` cells, broken at blanks where possible; at least one line."""
    lines, rest = [], clean(text)
    while width > 0 and width_of(rest) > width:
        head = _head(rest, width) or rest[:1]
        blank = head.rfind(" ")
        end = blank if blank > width // 3 else len(head)
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*lines, rest]


def line_width(line: Iterable[Span]) -> int:
    return sum(width_of(run.text) for run in line)


def fit_line(line: Sequence[Span], width: int, role: str = "") -> Line:
    """A line in exactly `width` cells, padded with blanks, or cut with an ellipsis."""
    left = width - line_width(line)
    if left < 0:
        line = _cut_line(line, width)
        left = width - line_width(line)
    return (*line, Span(" " * left, role)) if left else tuple(line)


def _cut_line(line: Sequence[Span], width: int) -> Line:
    found: list[Span] = []
    for run in line:
        text = cut(run.text, width)
        found.append(Span(text, run.role, run.chosen))
        width -= width_of(text)
        if text != run.text:
            break
    return tuple(run for run in found if run.text)


def laid_over(line: Line, over: Line, left: int) -> Line:
    """A line with another one on it, from a column on."""
    right = left + line_width(over)
    return _columns(line, 0, left) + over + _columns(line, right, line_width(line))


def _columns(line: Line, start: int, end: int) -> Line:
    """Some columns of a line; half of a wide character is a blank."""
    found, at = [], 0
    for run in line:
        size = width_of(run.text)
        if at < end and at + size > start:
            found.append(run._replace(text=_part(run.text, start - at, end - at)))
        at += size
    return tuple(run for run in found if run.text)


def _part(text: str, start: int, end: int) -> str:
    if text.isascii():
        return text[max(0, start) : end]
    found, at = [], 0
    for char in text:
        size = _cells(char)
        inside = min(at + size, end) - max(at, start)
        if inside == size:
            found.append(char if size or at > start else "")
        elif inside > 0:
            found.append(" " * inside)
        at += size
    return "".join(found)
