"""Forms (multipart/form-data) read while they arrive, with bounds.

Written here because nothing at hand does it: a well-kept library for it is not among the packages that run this
project, and aiohttp's reader takes bodies whose lines end in LF alone, believes the lengths that parts name, and reads
parts within parts. What two readers may take for different things is refused here: lines end in CRLF, a header is one
line, and nothing but the boundary ends a part.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from proxy.core.media.content_types import essence, parameters
from proxy.core.media.refusals import broken

MAX_PARTS = 100
#: The same as other readers have.
MAX_HEADERS = 32
MAX_HEADER_BYTES = 8 * 1024
_MAX_PADDING = 64

#: What makes a boundary of the bytes that look like one, or what may still become that; with anything else behind them
#: they are data.
_BEHIND = rb"(?:(?P<line>--|[ \t]{0,%d}+\r\n)|(?:-|[ \t]{0,%d}+\r?)\Z)" % (_MAX_PADDING, _MAX_PADDING)
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\x00\r\n]*)")


@dataclass(frozen=True, slots=True)
class PartHead:
    """What a part says about itself.

    name          None when it has none
    filename      None when there is none; as it was sent, with folders
    content_type  "" when there is none
    """

    name: str | None
    filename: str | None
    content_type: str


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A part is whole."""


#: Of each part its head, its data in pieces, its end.
FormEvent = PartHead | bytes | PartEnd


class MultipartParser:
    """Reads one form. Its memory is what no event was made of yet: part of a header, or what may become a boundary."""

    def __init__(self, boundary: bytes) -> None:
        self._boundary = b"\r\n--" + boundary
        self._delimiter = re.compile(re.escape(self._boundary) + _BEHIND, re.DOTALL)
        # A boundary at the very beginning has no line in front of it.
        self._buffer = b"\r\n"
        self._place = 0
        self._closed = False
        self._events = self._read()

    @property
    def held(self) -> int:
        """Bytes held now."""
        return len(self._buffer) - self._place

    def feed(self, data: bytes) -> Iterator[FormEvent]:
        """What can be told with these bytes; to be read to its end. Raises InvalidRequest where the form is broken."""
        self._buffer = self._buffer[self._place :] + data
        self._place = 0
        for event in self._events:
            if event is None:
                return
            yield event

    def end(self) -> None:
        """No more bytes follow. Raises InvalidRequest when the form is not whole."""
        if not self._closed:
            raise broken("it ends before its closing boundary")

    def _read(self) -> Generator[FormEvent | None, None, None]:
        """All events in their order; None where more bytes are needed."""
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
        """What stands before the first part, and belongs to none. A boundary that is no line of its own would make a
        preamble of the part behind it."""
        boundary, before = self._boundary[2:], b""
        for data in self._content():
            if data is None:
                yield None
                continue
            before = before[-len(boundary) :] + data
            if boundary in before:
                raise broken("its first boundary is no line that ends in CRLF")

    def _content(self) -> Generator[bytes | None, None, None]:
        """The data up to the next boundary, which is read as well."""
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
        """Where the bytes at the end begin that may be those of a boundary. There is one CR in it, the first byte."""
        size = len(self._buffer)
        begin = self._buffer.rfind(b"\r", max(self._place, size - len(self._boundary) + 1))
        return begin if begin >= 0 and self._boundary.startswith(self._buffer[begin:]) else size

    def _data_until(self, end: int) -> Iterator[bytes]:
        if end > self._place:
            data = self._buffer[self._place : end]
            self._place = end
            yield data

    def _head(self) -> Generator[PartHead | None, None, None]:
        """The headers of a part and the empty line behind them."""
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
    """The text of a parameter like `utf-8'en'a%20b`.

    >>> _decoded("UTF-8''%C3%A9.wav"), _decoded("x")
    ('é.wav', None)
    """
    charset, _, rest = (value or "").partition("'")
    _, quote, text = rest.partition("'")
    encoding = {"utf-8": "utf-8", "iso-8859-1": "latin-1"}.get(charset.lower())
    return unquote(text, encoding) if quote and encoding else None
