"""Text of a form."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Generic, TypeVar

from proxy.core.media.content_types import parameters
from proxy.core.media.multipart import PartHead
from proxy.core.media.pieces import Pieces

#: A mark at the beginning counts more than what the part's type says.
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
#: label -> codec, for the charsets of the web; the first labels mean what they mean to browsers. Python's own search
#: remembers each label that it is asked for, and knows codecs that take forever or make much out of little.
_CHARSETS = {
    **dict.fromkeys(("us-ascii", "ascii", "iso-8859-1", "iso8859-1", "latin1", "latin-1"), "cp1252"),
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    **{f"iso-8859-{number}": f"iso-8859-{number}" for number in (*range(2, 12), *range(13, 17))},
    **{name: name for name in ("shift_jis", "euc-jp", "iso-2022-jp", "euc-kr", "gbk", "gb2312", "gb18030", "big5")},
    **{name: name for name in ("koi8-r", "koi8-u", "utf-16le", "utf-16be")},
    "macintosh": "mac-roman",
    "utf-16": "utf-16-le",
}


#: Bytes. No value that is judged is as long.
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
        """No more bytes follow."""

    def text(self) -> str:
        """The text, U+FFFD in the place of what is none; its bytes are forgotten."""
        begin, charset = self._data.begin(3), self._charset
        for mark, of_mark in _MARKS.items():
            if begin.startswith(mark):
                charset = of_mark
                self._data.skip(len(mark))
        return "".join(codecs.iterdecode(self._data.take(), charset, "replace"))


Value = TypeVar("Value")


class JudgedText(TextPart, Generic[Value]):
    """Text that is judged as soon as it is there.

    judge  gives the value of the text; raises InvalidRequest. A text that is longer than any good one is judged by its
           beginning
    """

    def __init__(self, head: PartHead, judge: Callable[[str], Value]) -> None:
        super().__init__(head)
        self._judge = judge
        #: None before the part is whole.
        self.value: Value | None = None

    def add(self, data: bytes) -> None:
        if self.held <= MAX_JUDGED:
            super().add(data[: MAX_JUDGED + 1])

    def end(self) -> None:
        self.value = self._judge(self.text())


class Ignored:
    """A part that makes no difference."""

    def add(self, data: bytes) -> None: ...

    def end(self) -> None: ...
