"""A long JSON text parsed piece by piece.

One call into the parser holds the interpreter until it returns, also when it was made in a thread. Here none reads more
than some ten thousand characters, so that others go on meanwhile; what comes out is what one call gives.
"""

from __future__ import annotations

import json
import re
from typing import Any

from proxy.core.sse import JSON_BLANKS, scan_json

#: A list or an object is first looked for in as many characters, then in as many; a longer one is taken apart.
TRIES = (1024, 32 * 1024)
#: Characters of a long string that are read in one step.
STRING_PIECE = 512 * 1024
#: Levels that are taken apart; what is nested deeper is refused in any case.
MAX_LEVELS = 200

_SPACE = re.compile(rf"[{JSON_BLANKS}]*+")
#: Characters as they are and whole escapes, surrogates only in pairs.
_HEX = "[0-9a-fA-F]"
_UNITS = re.compile(
    rf'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]'
    rf"|\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|\\u(?![dD][89a-fA-F]){_HEX}{{4}})*+"
)


def parse_in_pieces(text: str) -> Any:
    """The value, as `load_json` gives it. Raises ValueError and RecursionError where that does."""
    parser = _TextInPieces(text)
    value, place = parser.value(parser.behind_blanks(0), 0)
    place = parser.behind_blanks(place)
    if place != len(text):
        raise json.JSONDecodeError("Extra data", text, place)
    return value


class _TextInPieces:
    def __init__(self, text: str) -> None:
        self._text = text
        self._names: dict[str, str] = {}
        #: Characters that may be read in vain, so that the work is linear however the text is nested.
        self._spare = 2 * len(text)

    def behind_blanks(self, place: int) -> int:
        while True:
            found = _SPACE.match(self._text, place, place + STRING_PIECE)
            end = found.end() if found else place
            if end < place + STRING_PIECE:
                return end
            place = end

    def value(self, place: int, level: int) -> tuple[Any, int]:
        """The value that begins here, and the place behind it."""
        first = self._text[place : place + 1]
        if first == '"':
            return self._string(place)
        if first not in ("{", "["):
            return scan_json(self._text, place)
        found = self._at_once(place)
        if found is not None:
            return found
        if level > MAX_LEVELS:
            raise RecursionError
        return self._object(place, level + 1) if first == "{" else self._list(place, level + 1)

    def _at_once(self, place: int) -> tuple[Any, int] | None:
        """A short list or object; None for one that is long, or wrong."""
        for size in TRIES:
            if self._spare < 0:
                return None
            try:
                value, end = scan_json(self._text[place : place + size], 0)
            except (ValueError, RecursionError):
                self._spare -= size
            else:
                return value, place + end
        return None

    def _string(self, quote: int) -> tuple[str, int]:
        """The string that begins here."""
        text, place = self._text, quote + 1
        parts: list[str] = []
        while True:
            last = text.find('"', place, place + STRING_PIECE)
            if text.find("\\", place, place + STRING_PIECE if last < 0 else last) >= 0:
                found = _UNITS.match(text, place, place + STRING_PIECE)
                end = found.end() if found else place
            else:
                end = min(place + STRING_PIECE, len(text)) if last < 0 else last
            ended = text[end : end + 1] == '"'
            if not (parts if ended else end > place):  # short, an error, or half of a surrogate pair
                return scan_json(text, quote)
            try:
                parts.append(scan_json(f'"{text[place:end]}"', 0)[0])
            except ValueError:
                return scan_json(text, quote)
            if ended:
                return "".join(parts), end + 1
            place = end

    def _list(self, place: int, level: int) -> tuple[list[Any], int]:
        text, values = self._text, list[Any]()
        place = self.behind_blanks(place + 1)
        if text[place : place + 1] == "]":
            return values, place + 1
        while True:
            value, place = self.value(place, level)
            values.append(value)
            place = self.behind_blanks(place)
            mark = text[place : place + 1]
            if mark == "]":
                return values, place + 1
            if mark != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, place)
            place = self.behind_blanks(place + 1)

    def _object(self, place: int, level: int) -> tuple[dict[str, Any], int]:
        text = self._text
        members: dict[str, Any] = {}
        place = self.behind_blanks(place + 1)
        if text[place : place + 1] == "}":
            return members, place + 1
        while True:
            if text[place : place + 1] != '"':
                raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, place)
            name, place = self._string(place)
            place = self.behind_blanks(place)
            if text[place : place + 1] != ":":
                raise json.JSONDecodeError("Expecting ':' delimiter", text, place)
            name = self._names.setdefault(name, name)
            members[name], place = self.value(self.behind_blanks(place + 1), level)
            place = self.behind_blanks(place)
            mark = text[place : place + 1]
            if mark == "}":
                return members, place + 1
            if mark != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, place)
            place = self.behind_blanks(place + 1)
