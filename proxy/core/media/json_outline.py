"""Reads JSON of many megabytes while it arrives: sets long strings aside, so that parsing the rest takes no time and
nothing is held twice.

    {"prompt": "a fox", "images": [{"image_url": "data:image/png;base64,iVBOR…"}]}     what came
    {"prompt": "a fox", "images": [{"image_url": NaN}]}                                the outline of it

`NaN` is no JSON, so no caller can have written it; each one marks the next of the long strings.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from proxy.core.invalid import InvalidRequest
from proxy.core.media.base64_text import strays
from proxy.core.media.pieces import Pieces
from proxy.core.media.refusals import refused, repeated
from proxy.core.sse import load_json

#: Longest short string, in bytes as written.
MAX_SHORT = 1024
#: Most bytes of a body without its long strings.
MAX_OUTLINE = 64 * 1024
#: Number of long strings that are kept; later ones are only read. A valid request has ten.
MAX_LONG_STRINGS = 16

_MARK = b"NaN"
#: Everything up to many blanks, or to a quote whose string may be long or incomplete: one with some escapes, or with
#: more than 480 bytes before the first, is handled separately.
_PLAIN = re.compile(
    rb'(?:[^" \t\r\n]++|[ \t\r\n]{1,64}+(?![ \t\r\n])|"[^"\\]{0,480}+(?:\\.[^"\\]{0,64}+){0,8}+")*+', re.DOTALL
)
_BLANKS = re.compile(rb"[ \t\r\n]++")
#: The content of a string as far as it goes; a backslash that ends the data is left.
_CONTENT = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_HEX = "[0-9a-fA-F]"
#: Characters and whole escapes; surrogates only in pairs.
_UNITS = re.compile(
    rf"(?:[^\\]++|\\[^u]|\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|\\u(?![dD][89a-fA-F]){_HEX}{{4}})*+"
)
#: Characters of the longest unit.
_LONGEST_UNIT = len(r"\ud83d\ude00")


def not_json(why: str = "") -> InvalidRequest:
    """The error for a body that is not JSON, or that readers may understand differently."""
    return refused(f"the body is not valid JSON{f': {why}' if why else ''}")


class LongString:
    """A string that was set aside: its text as UTF-8, without escapes, and its number of `strays`."""

    def __init__(self, *, kept: bool = True) -> None:
        self.utf8 = Pieces()
        self.strays = 0
        self._kept = kept
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""
        self._plain = True

    def add(self, raw: bytes, *, last: bool = False) -> None:
        """Adds the next bytes, as written in JSON. Raises InvalidRequest and UnicodeDecodeError."""
        found = strays(raw)
        if found or not self._plain:
            raw = self._unescaped(self._rest + self._decoder.decode(raw, last), last=last).encode()
            found = strays(raw)
            self._plain = not self._rest and self._decoder.getstate()[0] == b""
        self.strays += found
        if self._kept:
            self.utf8.add(raw)

    def _unescaped(self, text: str, *, last: bool) -> str:
        units = _UNITS.match(text)
        end = units.end() if units else 0
        self._rest = text[end:]
        if (last and self._rest) or len(self._rest) >= _LONGEST_UNIT:
            raise not_json("a string has an invalid escape, or half of a surrogate pair")
        return str(load_json(f'"{text[:end]}"'))

    def text(self) -> str:
        """The string, whose pieces are released."""
        return "".join(codecs.iterdecode(self.utf8.take(), "utf-8"))


class JsonOutline:
    """Reads one JSON text, strictly: no key twice, no half surrogate pairs, nothing that only Python accepts as
    JSON."""

    def __init__(self) -> None:
        self._outline = bytearray()
        self._strings: list[LongString] = []
        self._inside = False
        #: The beginning of a string that may prove short.
        self._short = b""
        self._long: LongString | None = None
        self._backslash = False
        self._marks = 0
        self._kept = 0

    @property
    def held(self) -> int:
        """Bytes held now."""
        return len(self._outline) + len(self._short) + self._kept

    def feed(self, data: bytes) -> None:
        """Takes the next bytes. Raises InvalidRequest as soon as this cannot become JSON, or has too many members."""
        if self._backslash:
            data, self._backslash = b"\\" + data, False
        place = 0
        try:
            while place < len(data):
                place = self._string(data, place) if self._inside else self._between(data, place)
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise not_json("a string has a character that must be escaped, or is not UTF-8") from None
        if len(self._outline) > MAX_OUTLINE:
            raise refused("the body has too many members")

    def _between(self, data: bytes, place: int) -> int:
        """Reads what is no string, and whole short strings."""
        plain = _PLAIN.match(data, place)
        end = plain.end() if plain else place
        self._add(data[place:end])
        blanks = _BLANKS.match(data, end)
        if blanks is not None:
            self._add(b" ")
            return blanks.end()
        self._inside = end < len(data)
        return end + self._inside

    def _add(self, part: bytes) -> None:
        if self._outline[-1:].isspace():
            part = part.lstrip(b" \t\r\n")
        self._outline += part

    def _string(self, data: bytes, place: int) -> int:
        """Reads the content of a string as far as it goes, and the quote after it."""
        quote = data.find(b'"', place)
        end = len(data) if quote < 0 else quote
        if data.find(b"\\", place, end) >= 0:
            content = _CONTENT.match(data, place)
            end = content.end() if content else place
        self._content(data[place:end])
        if end < len(data):
            self._backslash = data[end] == ord("\\")
            if not self._backslash:
                self._close()
        return end + 1

    def _content(self, raw: bytes) -> None:
        if self._long is None:
            self._short += raw
            if len(self._short) <= MAX_SHORT:
                return
            raw, self._short = self._short, b""
            self._long = LongString(kept=len(self._strings) < MAX_LONG_STRINGS)
        before = self._long.utf8.size
        self._long.add(raw)
        self._kept += self._long.utf8.size - before

    def _close(self) -> None:
        if self._long is None:
            self._outline += b'"' + self._short + b'"'
        else:
            self._long.add(b"", last=True)
            self._outline += _MARK
            self._marks += 1
            if len(self._strings) < MAX_LONG_STRINGS:
                self._strings.append(self._long)
        self._short, self._long, self._inside = b"", None, False

    def end(self) -> Any:
        """The value, with a `LongString` in place of each long string. Raises InvalidRequest."""
        if self._inside:
            raise not_json("it ends within a string")
        outline, self._outline = self._outline, bytearray()
        strings = _Strings(self._strings)
        decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=strings.next)
        try:
            value = decoder.decode(outline.decode())
            if _HALF.search(outline):
                json.dumps(value, ensure_ascii=False, default=lambda _: "").encode()
        except InvalidRequest:
            raise
        except json.JSONDecodeError as error:
            long_name = error.doc.startswith(_MARK.decode(), error.pos)
            raise not_json("a name is too long" if long_name else error.msg) from None
        except (UnicodeError, RecursionError, ValueError):
            raise not_json("half of a surrogate pair, a number out of range, or nested too deeply") from None
        if strings.used != self._marks:
            raise not_json("NaN is no value of it")
        return value


class _Strings:
    """Hands out the long strings in order, with empty ones for those that were not kept."""

    def __init__(self, strings: list[LongString]) -> None:
        self._strings = strings
        self.used = 0

    def next(self, constant: str) -> LongString:
        if constant != _MARK.decode():
            raise not_json(f"{constant} is no value of it")
        self.used += 1
        return self._strings[self.used - 1] if self.used <= len(self._strings) else LongString()


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in members:
        if name in found:
            raise not_json(f"{repeated(name)} occurs twice")
        found[name] = value
    return found
