"""The text of Claude Code's `Read` without what is not part of the file: line numbers, reminders, notices. Pure.

The service reads a whole file and writes it back whole. So a number that remains here ends up in the user's file, and a
line that is dropped here is lost there. Claude Code numbers every line, empty ones too:

    "     1→one\\n     2→\\n     3→three"     older versions
    "1\\tone\\n2\\t\\n3\\tthree"                newer ones
    "1:one\\n2:\\n3:\\tthree"                 the newest, for files with a line that begins with a tab

In such a text, a line without a number is not part of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(r" *+([0-9]{1,9})(?:→|\t|:)")
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_REMINDER_HEAD = re.compile(rf"\s*+{_OPEN}")
#: How newer versions begin a notice about a file, before the file (its place) or after it.
_ABOUT = "[This file "
_PLACE_HEAD = re.compile(r"\[This file is in [^\n]{1,300}\]\n\n")
#: Replaces bytes that are not text.
_NO_CHARACTER = "\ufffd"
#: Notices that no line of the file follows: it is empty, or shorter than the offset.
_NOTHING = re.compile(r"contents are empty|shorter than the provided offset")

#: Notices that the file is longer than the text, or that the text does not show all of its bytes.
_CUT = re.compile(
    r"truncat|partial view|cut off|was cut|more lines|lines (?:are |were )?(?:omitted|not shown)|will refuse it|"
    r"\blines? [0-9]+ ?(?:-|–|to) ?[0-9]+ of [0-9]+|\bfirst [0-9]+ (?:lines|of)",
    re.IGNORECASE,
)
#: Such a notice as the last line of a text without numbers, where it could be part of the file.
_NOTE = re.compile(r"(?=[\[(<.…])(?=.*(?:truncat|partial view|more lines)).*", re.IGNORECASE)
#: A notice of the client is short; a longer text is content, perhaps of another file in a reminder.
MAX_NOTICE = 1000
#: Claude Code returns this many lines when no number is given, in some versions without mentioning the rest.
USUAL_LINES = 2000
#: Older versions cut longer lines to this length.
USUAL_LINE_LENGTH = 2000


@dataclass(frozen=True)
class FileText:
    """A file's content as found in a client's text.

    truncated  whether the file differs, or may differ, from the content
    """

    content: str
    truncated: bool = False


def file_text(text: str, offset: int | None = None, limit: int | None = None) -> FileText:
    """The content in the text of a Read; the whole text when it is not in the form above.

    offset, limit  the requested range; the first number is the offset, or 1

    >>> file_text("     1→one\\n     2→two\\n\\n<system-reminder>x</system-reminder>").content
    'one\\ntwo'
    """
    head = _head_end(text)
    body = text[head:].lstrip("\n") if head else text
    if head and not body.strip():  # a notice only
        return FileText("", truncated=_NOTHING.search(text) is None)
    lines, rest = _numbered(body, offset)
    rest_is_blank = not rest or rest.isspace()
    if not lines or not (rest_is_blank or _is_notice(rest)):
        # after several numbered lines, text without a number may be an unknown notice
        return FileText(text, len(lines) > 1 or _NOTE.fullmatch(_last_line(text)) is not None)
    # a line break after the last line belongs to the file if the empty line after it has no number
    content = "\n".join(lines) + ("\n" if rest and rest_is_blank else "")
    is_cut = _is_cut(text[:head]) or _is_cut(rest) or _is_full(lines, limit) or any(map(_is_cut_line, lines))
    return FileText(content, is_cut or _NO_CHARACTER in content)


def _head_end(text: str) -> int:
    """The end of the client's text before a file; 0 when there is none."""
    place = _PLACE_HEAD.match(text)
    return _reminders_end(text) if place is None else place.end()


def is_reminder(text: str) -> bool:
    """Whether a text has only blanks and blocks that the client, not the user, put there.

    >>> is_reminder("\\n<system-reminder>a</system-reminder> "), is_reminder("Stop.")
    (True, False)
    """
    return not text[_reminders_end(text) :].strip()


def _reminders_end(text: str) -> int:
    """The end of the reminders at the beginning of a text; 0 when there are none."""
    end = 0
    while (found := _REMINDER_HEAD.match(text, end)) is not None:
        close = text.find(_CLOSE, found.end())
        if close < 0:
            break
        end = close + len(_CLOSE)
    return end


def _numbered(text: str, offset: int | None) -> tuple[list[str], str]:
    """The consecutively numbered lines at the beginning of a text, without their numbers, and the rest, which begins
    with a line break. No lines when the first number does not fit the range."""
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
    if len(rest) == 1 and rest[0].lstrip(" ") == str(number):
        return [*bodies, ""], ""  # an empty last line, whose separator was trimmed from the text's end
    return bodies, "".join(f"\n{line}" for line in rest)


def _body(line: str, number: str) -> str | None:
    """A line without its number; None when it has another number or none."""
    for separator in ("\t", "→", ":"):
        head, found, body = line.partition(separator)
        if found and head.lstrip(" ") == number:
            return body
    return None


def _may_begin(number: int, offset: int | None) -> bool:
    """Whether the first line may have this number. A negative offset counts from the end, so that any may."""
    return number in (1, offset) or (offset is not None and offset < 0)


def _is_notice(rest: str) -> bool:
    """Whether the text after the numbered lines is the client's: reminders, or a notice that the file continues."""
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
