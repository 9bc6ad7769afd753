"""Reads forms (multipart/form-data) while they arrive, with bounds.

Our own parser, since none of the project's dependencies fits. aiohttp's reader takes lines that end in LF alone and
headers that occur twice, reads parts within parts, and ends a part at what only begins as its boundary. Refused here is
what readers may understand differently: lines end in CRLF, a header is one line, and only the boundary ends a part.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from proxy.core.media.content_types import essence, parameters
from proxy.core.media.refusals import broken

MAX_PARTS = 100
#: Bounds on headers, as other readers have them.
MAX_HEADERS = 32
MAX_HEADER_BYTES = 8 * 1024
_MAX_PADDING = 64

#: What must follow the bytes of a boundary, or may still become that; followed by anything else they are data.
_AFTER = rb"(?:(?P<line>--|[ \t]{0,%d}+\r\n)|(?:-|[ \t]{0,%d}+\r?)\Z)" % (_MAX_PADDING, _MAX_PADDING)
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\x00\r\n]*)")


@dataclass(frozen=True, slots=True)
class PartHead:
    """The headers of a part.

    name          None if it has none
    filename      None if there is none; as it was sent, with folders
    content_type  "" if there is none
    """

    name: str | None
    filename: str | None
    content_type: str


@dataclass(frozen=True, slots=True)
class PartEnd:
    """The end of a part."""


#: Each part has its head, its data in pieces, and its end.
FormEvent = PartHead | bytes | PartEnd


class MultipartParser:
    """Reads one form. It holds only bytes without an event so far: part of a header, or of a possible boundary."""

    def __init__(self, boundary: bytes) -> None:
        self._boundary = b"\r\n--" + boundary
        self._delimiter = re.compile(re.escape(self._boundary) + _AFTER, re.DOTALL)
        # A boundary at the very beginning has no line before it.
        self._buffer = b"\r\n"
        self._place = 0
        self._closed = False
        self._events = self._read()

    @property
    def held(self) -> int:
        """Bytes held now."""
        return len(self._buffer) - self._place

    def feed(self, data: bytes) -> Iterator[FormEvent]:
        """Yields the events of these bytes; read it to its end. Raises InvalidRequest if the form is broken."""
        self._buffer = self._buffer[self._place :] + data
        self._place = 0
        for event in self._events:
            if event is None:
                return
            yield event

    def end(self) -> None:
        """Ends the form. Raises InvalidRequest if it is incomplete."""
        if not self._closed:
            raise broken("it ends before its closing boundary")

    def _read(self) -> Generator[FormEvent | None, None, None]:
        """Yields all events in order, None where more bytes are needed."""
        yield from self._preamble()
        parts = 0
        while not self._closed:
            parts += 1
            if parts > MAX_PARTS:
                raise broken(f"it has more than {MAX_PARTS} parts")
            yield from self._head()
            yield from self._content()
            yield PartEnd()
        while True:
            self._buffer = b""
            yield None

    def _preamble(self) -> Generator[None, None, None]:
        """Skips what precedes the first part. A boundary that is no line of its own would turn the part after it into a
        preamble."""
        boundary, before = self._boundary[2:], b""
        for data in self._content():
            if data is None:
                yield None
                continue
            before = before[-len(boundary) :] + data
            if boundary in before:
                raise broken("its first boundary is no line that ends in CRLF")

    def _content(self) -> Generator[bytes | None, None, None]:
        """Yields the data up to the next boundary, and reads the boundary."""
        while True:
            begin = self._buffer.find(self._boundary, self._place)
            found = self._delimiter.search(self._buffer, begin) if begin >= 0 else None
            yield from self._data_until(found.start() if found else self._may_begin())
            if found and found["line"]:
                self._place = found.end()
                self._closed = found["line"] == b"--"
                return
            yield None

    def _may_begin(self) -> int:
        """Where, at the end, a possible boundary begins. Its first byte is the only CR in it."""
        size = len(self._buffer)
        begin = self._buffer.rfind(b"\r", max(self._place, size - len(self._boundary) + 1))
        return begin if begin >= 0 and self._boundary.startswith(self._buffer[begin:]) else size

    def _data_until(self, end: int) -> Iterator[bytes]:
        if end > self._place:
            data = self._buffer[self._place : end]
            self._place = end
            yield data

    def _head(self) -> Generator[PartHead | None, None, None]:
        """Reads the headers of a part and the empty line after them."""
        headers: dict[str, str] = {}
        for _ in range(MAX_HEADERS + 1):
            line = yield from self._line()
            if not line:
                yield _part_head(headers)
                return
            header = _HEADER.fullmatch(line)
            if header is None:
                raise broken("a header of a part is no `name: value` on one line")
            name = header[1].decode().lower()
            if name in headers:
                raise broken(f"a part has two headers {name}")
            if name in _READ:
                headers[name] = header[2].decode("utf-8", "replace").strip(" \t")
        raise broken(f"a part has more than {MAX_HEADERS} headers")

    def _line(self) -> Generator[None, None, bytes]:
        while (end := self._buffer.find(b"\r\n", self._place)) < 0 and self.held <= MAX_HEADER_BYTES:
            yield None
        line = self._buffer[self._place : end]
        if end < 0 or len(line) > MAX_HEADER_BYTES:
            raise broken(f"a header of a part is longer than {MAX_HEADER_BYTES} bytes")
        self._place = end + 2
        return line


_DISPOSITION, _TYPE = "content-disposition", "content-type"
_READ = frozenset({_DISPOSITION, _TYPE})


def _part_head(headers: dict[str, str]) -> PartHead:
    disposition = headers.get(_DISPOSITION, "")
    found = parameters(disposition)
    if found is None:
        raise broken("a header content-disposition has a parameter twice, or one that cannot be read")
    if essence(disposition) != "form-data":
        found = {}
    filename = found.get("filename", _decoded(found.get("filename*")))
    return PartHead(found.get("name"), filename, headers.get(_TYPE, ""))


def _decoded(value: str | None) -> str | None:
    """The text of a parameter like `utf-8'en'a%20b`, None if it is none.

    >>> _decoded("UTF-8''%C3%A9.wav"), _decoded("x")
    ('é.wav', None)
    """
    charset, _, rest = (value or "").partition("'")
    _, quote, text = rest.partition("'")
    encoding = {"utf-8": "utf-8", "iso-8859-1": "latin-1"}.get(charset.lower())
    return unquote(text, encoding) if quote and encoding else None
