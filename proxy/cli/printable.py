"""Makes text of unknown origin safe for a terminal: characters that move the cursor, change colours or the writing
direction are shown as escapes."""

from __future__ import annotations

import re

#: C0 except tab and line feed, DEL, C1, line separators, writing directions, and halves of characters, which no
#: encoding has.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with its lines, safe to print.

    >>> printable("a\\x1b[2Jb\\r\\n")
    'a\\\\x1b[2Jb\\\\x0d\\n'
    """
    return _UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    """The text on one line."""
    return printable(text).replace("\t", "\\t").replace("\n", "\\n")


def cut(text: str, most: int) -> str:
    """One line of at most `most` characters."""
    return one_line(text if len(text) <= most else text[: most - 1] + "…")


def amount(size: int) -> str:
    """Bytes for a reader.

    >>> amount(999), amount(12_345), amount(3_400_000)
    ('999 B', '12.3 kB', '3.4 MB')
    """
    for limit, divisor, unit in ((1000, 1, "B"), (999_950, 1e3, "kB"), (999_950_000, 1e6, "MB")):
        if size < limit:
            return f"{size} B" if divisor == 1 else f"{size / divisor:.1f} {unit}"
    return f"{size / 1e9:.1f} GB"


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
