"""Foreign text (a server's error, a query parameter) made fit for an error message or a terminal."""

from __future__ import annotations

from proxy.core.secret import blanked

#: Enough for every reason an issuer gives in words; a page of HTML is cut.
MAX_REASON_CHARS = 400
#: Blanks are squeezed, so as many times the limit is looked at.
_SQUEEZED = 4


def printable(text: str, limit: int = MAX_REASON_CHARS) -> str:
    """One line without control characters, at most `limit` characters.

    Escape sequences in an error text could otherwise rewrite what a terminal shows. Secrets of ours are taken out
    before it is cut.
    """
    return one_line(blanked(text[: limit * _SQUEEZED]), limit)


def one_line(text: str, limit: int = MAX_REASON_CHARS) -> str:
    """The same of a text about our own account, which its user may see."""
    head = text[: limit * _SQUEEZED]
    line = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
