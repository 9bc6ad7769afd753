"""Shared by the forms of this package: passes parts to their keepers, in order, and bounds the body."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from proxy.core.media.content_types import parameters
from proxy.core.media.multipart import MultipartParser, PartEnd, PartHead
from proxy.core.media.pieces import Pieces
from proxy.core.media.refusals import body_too_large


class Part(Protocol):
    """The keeper of a part. Both methods raise InvalidRequest."""

    def add(self, data: bytes) -> None: ...

    def end(self) -> None: ...


class FormParts:
    """Reads a form of at most `limit` bytes. It keeps no reference to its owner, so that the owner's megabytes are
    freed with the last reference and not at a later collection."""

    def __init__(self, boundary: bytes, limit: int) -> None:
        self._parser = MultipartParser(boundary)
        self._left = limit
        self._limit = limit
        self._part: Part | None = None

    @property
    def held(self) -> int:
        """Bytes held now, without those of parts."""
        return self._parser.held

    def feed(self, data: bytes, begin: Callable[[PartHead], Part]) -> None:
        """Takes the next bytes. Raises InvalidRequest and TooLarge.

        begin  returns the keeper of a part with this head; raises InvalidRequest for one that is not accepted
        """
        self._left -= len(data)
        if self._left < 0:
            raise body_too_large(self._limit)
        for event in self._parser.feed(data):
            if isinstance(event, PartHead):
                self._part = begin(event)
            elif self._part is not None:
                self._part.end() if isinstance(event, PartEnd) else self._part.add(event)

    def end(self) -> None:
        """Ends the form. Raises InvalidRequest if it is incomplete."""
        self._parser.end()


#: byte order mark -> charset, which overrides that of the part's type.
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
#: label -> codec, for the charsets of the web; the first labels have the meaning that browsers give them. Python's own
#: lookup remembers each label, and knows codecs that take forever or expand little to much.
_CHARSETS = {
    **dict.fromkeys(("us-ascii", "ascii", "iso-8859-1", "iso8859-1", "latin1", "latin-1"), "cp1252"),
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    **{f"iso-8859-{number}": f"iso-8859-{number}" for number in (*range(2, 12), *range(13, 17))},
    **{name: name for name in ("shift_jis", "euc-jp", "iso-2022-jp", "euc-kr", "gbk", "gb2312", "gb18030", "big5")},
    **{name: name for name in ("koi8-r", "koi8-u", "utf-16le", "utf-16be")},
    "macintosh": "mac-roman",
    "utf-16": "utf-16-le",
}


#: Bytes of a judged text that are kept; no valid one is as long.
MAX_JUDGED = 200


class TextPart:
    """The text of one part."""

    def __init__(self, head: PartHead) -> None:
        label = (parameters(head.content_type) or {}).get("charset", "")
        self._charset = _CHARSETS.get(label.strip().lower(), "utf-8")
        self._data = Pieces()

    @property
    def held(self) -> int:
        """Bytes held now."""
        return self._data.size

    def add(self, data: bytes) -> None:
        """Takes the next bytes."""
        self._data.add(data)

    def end(self) -> None:
        """Does nothing: the text is read by `text`."""

    def text(self) -> str:
        """The text, with U+FFFD for invalid bytes; releases its bytes."""
        begin, charset = self._data.begin(3), self._charset
        for mark, of_mark in _MARKS.items():
            if begin.startswith(mark):
                charset = of_mark
                self._data.skip(len(mark))
        return "".join(codecs.iterdecode(self._data.take(), charset, "replace"))


Value = TypeVar("Value")


class JudgedText(TextPart, Generic[Value]):
    """A text that is judged as soon as it is complete.

    judge  returns the value of the text; raises InvalidRequest. A text that is longer than any valid one is judged by
           its beginning
    """

    def __init__(self, head: PartHead, judge: Callable[[str], Value]) -> None:
        super().__init__(head)
        self._judge = judge
        #: None before the part is complete.
        self.value: Value | None = None

    def add(self, data: bytes) -> None:
        if self.held <= MAX_JUDGED:
            super().add(data[: MAX_JUDGED + 1])

    def end(self) -> None:
        self.value = self._judge(self.text())


class Ignored:
    """A part that is ignored."""

    def add(self, data: bytes) -> None: ...

    def end(self) -> None: ...
