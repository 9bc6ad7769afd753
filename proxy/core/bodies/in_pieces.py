"""Parses a long JSON text piece by piece.

One call of the parser holds the interpreter until it returns, even in a thread. Here none reads more than some ten
thousand characters, so that other threads run in between; the result is that of one call.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from proxy.core.sse import JSON_BLANKS, scan_json

#: Characters in which a list or an object is first parsed at once; a longer one is taken apart.
TRIES = (1024, 32 * 1024)
#: Characters of a long string that are read in one step.
STRING_PIECE = 512 * 1024
#: Levels that are taken apart; deeper nesting is refused in any case.
MAX_LEVELS = 200

_SPACE = re.compile(rf"[{JSON_BLANKS}]*+")
#: Plain characters and whole escapes, surrogates only in pairs.
_HEX = "[0-9a-fA-F]"
_UNITS = re.compile(
    rf'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]'
    rf"|\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|\\u(?![dD][89a-fA-F]){_HEX}{{4}})*+"
)


def _trailing(text: str) -> tuple[str, bool]:
    """This Python's message for a comma before the end, and whether it points to the comma (from 3.13 on) or the
    end."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.msg, text[error.pos] == ","
    raise AssertionError(text)


_TRAILING = {"]": _trailing("[1,]"), "}": _trailing('{"":1,}')}


def parts_of(raw: bytes | bytearray) -> list[str]:
    """The text in parts: allocating one as long as the body would hold the interpreter. Raises UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    size = 4 * STRING_PIECE  # bytes, so that each has as many characters as are read in one step
    parts, place = [], 0
    try:
        while place < len(raw):
            parts.append(decoder.decode(raw[place : place + size], place + size >= len(raw)))
            place += size
    except UnicodeDecodeError as error:
        at = error.start + min(place + size, len(raw)) - len(error.object)
        raise UnicodeDecodeError("utf-8", raw, at, at + 1, error.reason) from None
    return parts


def parse_in_pieces(parts: list[str]) -> Any:
    """The value of the text in these parts, as from `load_json`. Raises ValueError and RecursionError like that."""
    parser = _TextInPieces(parts)
    value, place = parser.value(parser.after_blanks(0), 0)
    if parser.after_blanks(place) != parser.length:
        raise parser.error("Extra data", place)
    return value


class _TextInPieces:
    """Parses the text, of which it reads two parts at a time. Places are those in the whole text."""

    def __init__(self, parts: list[str]) -> None:
        self.length = sum(map(len, parts))
        self._parts = parts
        self._names: dict[str, str] = {}
        #: Characters that may be read in vain, so that the work is linear for any nesting.
        self._spare = 2 * self.length
        self._first = 0  # number of the first of the two parts
        self._start = 0  # its place
        self._text = "".join(parts[:2])

    def error(self, words: str, place: int) -> json.JSONDecodeError:
        return json.JSONDecodeError(words, self._whole(), place)

    def _whole(self) -> str:
        """The whole text, for errors, which name a line, and for rare cases."""
        return "".join(self._parts)

    def _at(self, place: int) -> int:
        """The index of a place in the two parts: in the first one, unless no other follows them."""
        while self._first + 2 < len(self._parts) and place - self._start > len(self._parts[self._first]):
            self._start += len(self._parts[self._first])
            self._first += 1
            self._text = "".join(self._parts[self._first : self._first + 2])
        return place - self._start

    def _sign(self, place: int) -> str:
        at = self._at(place)
        return self._text[at : at + 1]

    def after_blanks(self, place: int) -> int:
        while True:
            at = self._at(place)
            found = _SPACE.match(self._text, at, at + STRING_PIECE)
            end = found.end() if found else at
            if end < min(at + STRING_PIECE, len(self._text)) or end == at:
                return self._start + end
            place = self._start + end

    def value(self, place: int, level: int) -> tuple[Any, int]:
        """The value that begins here, and the place after it."""
        first = self._sign(place)
        if first == '"':
            return self._string(place)
        if first not in ("{", "["):
            return self._scalar(place)
        found = self._at_once(place)
        if found is not None:
            return found
        if level > MAX_LEVELS:
            raise RecursionError
        return self._object(place, level + 1) if first == "{" else self._list(place, level + 1)

    def _scalar(self, place: int) -> tuple[Any, int]:
        at = self._at(place)
        more = self._first + 2 < len(self._parts)
        try:
            value, end = scan_json(self._text, at)
        except ValueError:
            return scan_json(self._whole(), place)
        if more and len(self._text) - end < len("e+1"):  # a number that may continue
            return scan_json(self._whole(), place)
        return value, self._start + end

    def _at_once(self, place: int) -> tuple[Any, int] | None:
        """A short list or object and the place after it; None for one that is long or invalid."""
        at = self._at(place)
        for size in TRIES:
            if self._spare < 0:
                return None
            try:
                value, end = scan_json(self._text[at : at + size], 0)
            except (ValueError, RecursionError):
                self._spare -= size
            else:
                return value, place + end
        return None

    def _string(self, quote: int) -> tuple[str, int]:
        """The string that begins here, and the place after it."""
        place = quote + 1
        parts: list[str] = []
        while True:
            at, text = self._at(place), self._text
            last = text.find('"', at, at + STRING_PIECE)
            if text.find("\\", at, at + STRING_PIECE if last < 0 else last) >= 0:
                found = _UNITS.match(text, at, at + STRING_PIECE)
                end = found.end() if found else at
            else:
                end = min(at + STRING_PIECE, len(text)) if last < 0 else last
            ended = text[end : end + 1] == '"'
            try:
                if not ended and end == at:
                    raise ValueError("an error, or half of a surrogate pair")
                parts.append(scan_json(f'"{text[at:end]}"', 0)[0])
            except ValueError:
                return scan_json(self._whole(), quote)
            place = self._start + end
            if ended:
                return parts[0] if len(parts) == 1 else "".join(parts), place + 1

    def _list(self, place: int, level: int) -> tuple[list[Any], int]:
        values = list[Any]()
        place = self.after_blanks(place + 1)
        if self._sign(place) == "]":
            return values, place + 1
        while True:
            value, place = self.value(place, level)
            values.append(value)
            place = self.after_blanks(place)
            mark = self._sign(place)
            if mark == "]":
                return values, place + 1
            if mark != ",":
                raise self.error("Expecting ',' delimiter", place)
            place = self._after_comma(place, "]")

    def _object(self, place: int, level: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        place = self.after_blanks(place + 1)
        if self._sign(place) == "}":
            return members, place + 1
        while True:
            if self._sign(place) != '"':
                raise self.error("Expecting property name enclosed in double quotes", place)
            name, place = self._string(place)
            place = self.after_blanks(place)
            if self._sign(place) != ":":
                raise self.error("Expecting ':' delimiter", place)
            name = self._names.setdefault(name, name)
            members[name], place = self.value(self.after_blanks(place + 1), level)
            place = self.after_blanks(place)
            mark = self._sign(place)
            if mark == "}":
                return members, place + 1
            if mark != ",":
                raise self.error("Expecting ',' delimiter", place)
            place = self._after_comma(place, "}")

    def _after_comma(self, comma: int, end: str) -> int:
        """The place of the next value or name. Raises ValueError if the list or object ends instead."""
        place = self.after_blanks(comma + 1)
        if self._sign(place) != end:
            return place
        words, at_comma = _TRAILING[end]
        raise self.error(words, comma if at_comma else place)
