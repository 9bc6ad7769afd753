"""Makes foreign text (a server's error, a query parameter) fit for an error message or a terminal."""

from __future__ import annotations

from proxy.core.hiding.secret import blanked

#: Longest reason, in characters: enough for an issuer's words; a page of HTML is cut.
MAX_REASON_CHARS = 400
#: So many times the limit is read, since blanks are squeezed.
_SQUEEZED = 4


def printable(text: str, limit: int = MAX_REASON_CHARS) -> str:
    """One line without control characters, at most `limit` characters.

    Escape sequences in an error text could otherwise rewrite what a terminal shows. Our secrets are removed before it
    is cut.
    """
    return one_line(blanked(text[: limit * _SQUEEZED]), limit)


def one_line(text: str, limit: int = MAX_REASON_CHARS) -> str:
    """Like `printable`, but keeps secrets: for a text about our own account, which its user may see."""
    head = text[: limit * _SQUEEZED]
    line = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
