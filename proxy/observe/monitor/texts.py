"""Texts of others, before they are kept."""

from __future__ import annotations

#: Of an id or a name, and of a message, in characters.
MAX_ID, MAX_MESSAGE = 512, 500


def short(text: str | None) -> str | None:
    """An id or a name, at its full length unless somebody wants to fill tables, fit for a terminal."""
    if text is None or (len(text) <= MAX_ID and text.isprintable()):
        return text
    return _printable(text[:MAX_ID])


def one_line(text: str) -> str:
    """A message as one line, fit for a terminal."""
    if not text:
        return ""
    line = " ".join(text[: 4 * MAX_MESSAGE].split())
    clean = line if line.isprintable() else _printable(line)
    return clean if len(clean) <= MAX_MESSAGE else f"{clean[: MAX_MESSAGE - 1]}…"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
