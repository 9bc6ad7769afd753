"""Foreign text (a server's error, a query parameter) made fit for an error message or a terminal."""

from __future__ import annotations

#: Enough for every reason an issuer gives in words; a page of HTML is cut.
MAX_REASON_CHARS = 400


def printable(text: str, limit: int = MAX_REASON_CHARS) -> str:
    """One line without control characters, at most `limit` characters.

    Escape sequences in an error text could otherwise rewrite what a terminal shows.
    """
    head = text[: limit * 4]  # blanks are squeezed below, so look a little further than the limit
    line = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
