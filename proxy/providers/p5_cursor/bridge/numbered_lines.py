"""The text of Claude Code's `Read` without what is not of the file: line numbers, reminders, notices. Pure.

The service reads a whole file and writes it back whole, so a number that stays here ends up in the user's file, and a
line that goes missing here is lost there. Claude Code numbers every line, the empty ones too:

    "     1→one\\n     2→\\n     3→three"     older versions
    "1\\tone\\n2\\t\\n3\\tthree"                newer ones
    "1:one\\n2:\\n3:\\tthree"                 the newest, for files with a line that begins with a tab

so in such a text a line without a number is not of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(r" *+([0-9]{1,9})(?:→|\t|:)")
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_REMINDER_HEAD = re.compile(rf"\s*+{_OPEN}")
#: How newer versions begin what they say of a file, before it (where it lies) or behind it.
_ABOUT = "[This file "
_PLACE_HEAD = re.compile(r"\[This file is in [^\n]{1,300}\]\n\n")
#: Stands for bytes that are no text.
_NO_CHARACTER = "\ufffd"
#: Where there is nothing of the file: it is empty, or shorter than the offset.
_NOTHING = re.compile(r"contents are empty|shorter than the provided offset")

#: What says that there is more of the file than the text, or that the text is not all that its bytes say.
_CUT = re.compile(
    r"truncat|partial view|cut off|was cut|more lines|lines (?:are |were )?(?:omitted|not shown)|will refuse it|"
    r"\blines? [0-9]+ ?(?:-|–|to) ?[0-9]+ of [0-9]+|\bfirst [0-9]+ (?:lines|of)",
    re.IGNORECASE,
)
#: The same as the last line of a text without numbers, where it could be of the file.
_NOTE = re.compile(r"(?=[\[(<.…])(?=.*(?:truncat|partial view|more lines)).*", re.IGNORECASE)
#: A notice of the client is short; more than this is content, be it of another file in a reminder.
MAX_NOTICE = 1000
#: Claude Code gives this many lines when no number of them is asked for, in some versions without a word of the rest.
USUAL_LINES = 2000
#: Older versions cut longer lines there.
USUAL_LINE_LENGTH = 2000


@dataclass(frozen=True)
class FileText:
    """What a client's text says of a file.

    truncated  whether the file is, or may be, another than the content
    """

    content: str
    truncated: bool = False


def file_text(text: str, offset: int | None = None, limit: int | None = None) -> FileText:
    """The content in the text of a Read; the text as it is when it is not in the form above.

    offset, limit  the range that was asked for; the first number is the offset, or 1

    >>> file_text("     1→one\\n     2→two\\n\\n<system-reminder>x</system-reminder>").content
    'one\\ntwo'
    """
    head = _head_end(text)
    body = text[head:].lstrip("\n") if head else text
    if head and not body.strip():  # nothing but a notice
        return FileText("", truncated=_NOTHING.search(text) is None)
    lines, rest = _numbered(body, offset)
    rest_is_blank = not rest or rest.isspace()
    if not lines or not (rest_is_blank or _is_notice(rest)):
        # behind several numbered lines, what has no number may be a note that is not known here
        return FileText(text, len(lines) > 1 or _NOTE.fullmatch(_last_line(text)) is not None)
    # the break behind the last line is one of the file where the empty line after it has no number
    content = "\n".join(lines) + ("\n" if rest and rest_is_blank else "")
    is_cut = _is_cut(text[:head]) or _is_cut(rest) or _is_full(lines, limit) or any(map(_is_cut_line, lines))
    return FileText(content, is_cut or _NO_CHARACTER in content)


def _head_end(text: str) -> int:
    """Where what the client says before a file ends; 0 when it says nothing."""
    place = _PLACE_HEAD.match(text)
    return _reminders_end(text) if place is None else place.end()


def is_reminder(text: str) -> bool:
    """Whether a text holds nothing but blanks and blocks that the client, not the user, put there.

    >>> is_reminder("\\n<system-reminder>a</system-reminder> "), is_reminder("Stop.")
    (True, False)
    """
    return not text[_reminders_end(text) :].strip()


def _reminders_end(text: str) -> int:
    """Where the reminders end that a text begins with; 0 when it begins with none."""
    end = 0
    while (found := _REMINDER_HEAD.match(text, end)) is not None:
        close = text.find(_CLOSE, found.end())
        if close < 0:
            break
        end = close + len(_CLOSE)
    return end


def _numbered(text: str, offset: int | None) -> tuple[list[str], str]:
    """The lines with consecutive numbers that a text starts with, without these, and the text behind them, which begins
    with a line break. No lines when the first number is not one that the range allows."""
    first = _NUMBER.match(text)
    if first is None or not _may_begin(int(first[1]), offset):
        return [], text
    lines, bodies = text.split("\n"), []
    for number, line in enumerate(lines, int(first[1])):
        body = _body(line, str(number))
        if body is None:
            break
        bodies.append(body)
    if first[0].endswith(":") and not any(body.startswith("\t") for body in bodies):
        return [], text
    rest = lines[len(bodies) :]
    if len(rest) == 1 and rest[0].strip() == str(number):
        return [*bodies, ""], ""  # an empty last line, whose separator went with the blanks around the text
    return bodies, "".join(f"\n{line}" for line in rest)


def _body(line: str, number: str) -> str | None:
    """A line without its number; None when that is another one or none."""
    for separator in ("\t", "→", ":"):
        head, found, body = line.partition(separator)
        if found and head.lstrip(" ") == number:
            return body
    return None


def _may_begin(number: int, offset: int | None) -> bool:
    """A negative offset counts from the end, so that any line may be the first."""
    return number in (1, offset) or (offset is not None and offset < 0)


def _is_notice(rest: str) -> bool:
    """Whether what follows the numbered lines is of the client: reminders, or a note that the file goes on."""
    rest = rest.strip()
    return (rest.startswith((_OPEN, _ABOUT)) and rest.endswith((_CLOSE, "]"))) or _is_cut(rest)


def _is_cut(words: str) -> bool:
    return any(len(part) <= MAX_NOTICE and _CUT.search(part) for part in words.split(_CLOSE))


def _is_full(lines: list[str], limit: int | None) -> bool:
    return limit is None and len(lines) == USUAL_LINES


def _is_cut_line(line: str) -> bool:
    return len(line) == USUAL_LINE_LENGTH or (len(line) > USUAL_LINE_LENGTH and line.endswith("[truncated]"))


def _last_line(text: str) -> str:
    return text.rstrip()[-MAX_NOTICE:].rpartition("\n")[2]
