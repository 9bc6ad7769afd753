"""Tool calls that the model writes as XML into its text, as it saw them in the history. Pure.

    <tool_use id="x" name="Grep">{"pattern": "a"}</tool_use>

Anything else is text, to the last character; text that could become a call is held back.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from proxy.core.sse import load_json

#: Characters of an element; a longer one is text. Until then it is held in memory.
MAX_ELEMENT = 1024 * 1024

_OPEN, _CLOSE = "<tool_use", "</tool_use>"
#: Followed by a character that cannot continue the tag's name.
_START = re.compile(rf"{_OPEN}(?![0-9A-Za-z_])")
#: Possessive, and only from the start of a word, so that a long invalid tag takes linear time.
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([A-Za-z_][\w:.-]*+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""", re.ASCII)
#: The ampersand last: its result is text.
_ENTITIES = (("&quot;", '"'), ("&apos;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


@dataclass(frozen=True)
class XmlCall:
    """A call in the text."""

    name: str
    input: dict[str, Any]


class XmlCalls:
    """Splits text into text and the first call in it. Text after the call is ignored: models tend to invent its result,
    so the answer ends there.

    The joined pieces are equal for any split of the text. Without tools there is nothing to find.

    >>> calls = XmlCalls({"Read"})
    >>> calls.feed('I look. <tool_use name="Read">{"file_path":"/a"}</tool'), calls.feed("_use> And then")
    (['I look. '], [XmlCall(name='Read', input={'file_path': '/a'})])
    """

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = frozenset(tools)
        self._call: XmlCall | None = None
        self._element: _Element | None = None
        self._start = ""  # possible beginning of an element at the end of the text so far

    def feed(self, text: str) -> list[str | XmlCall]:
        """Returns at most one text, followed by the call."""
        if not self._tools:
            return [text] if text else []
        if self._call is not None:
            return []
        texts: list[str] = []
        text, position = self._start + text, 0
        self._start = ""
        while position < len(text) and self._call is None:
            step = self._plain if self._element is None else self._element_part
            position = step(text, position, texts)
        said = "".join(texts)
        return [*([said] if said else []), *([self._call] if self._call is not None else [])]

    def flush(self) -> str:
        """Releases the held text, when nothing more comes or something else comes first."""
        held = self._start + ("".join(self._element.parts) if self._element is not None else "")
        self._start, self._element = "", None
        return held

    def _plain(self, text: str, position: int, texts: list[str]) -> int:
        """Passes on the text before the next element. Returns the element's start."""
        found = _START.search(text, position)
        if found is not None and found.end() < len(text):
            self._element = _Element()
            texts.append(text[position : found.start()])
            return found.start()
        last = text.rfind("<", max(position, len(text) - len(_OPEN)))
        kept = last if last >= 0 and _OPEN.startswith(text[last:]) else len(text)
        texts.append(text[position:kept])
        self._start = text[kept:]
        return len(text)

    def _element_part(self, text: str, position: int, texts: list[str]) -> int:
        """Takes text into the open element. Returns the end of the element, or of the text."""
        element = self._element or _Element()
        end = element.take(text, position)
        if end is None:
            texts += element.overflow()
            return len(text)
        self._element = None
        raw = "".join(element.parts)
        if element.size <= MAX_ELEMENT:
            self._call = _call_in(raw, self._tools)
        if self._call is None:
            texts.append(raw)
        return end


class _Element:
    """An element as far as it has come. Each character is read once: only a possible beginning of the end tag is read
    again."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0
        self._in_tag = True
        self._tail = ""

    def take(self, text: str, position: int) -> int | None:
        """Adds text from `position` on. Returns the end of the element, None when it is not there yet."""
        end = self._end(text, position)
        piece = text[position:end]
        self.parts.append(piece)
        self.size += len(piece)
        return end

    def overflow(self) -> list[str]:
        """Releases the parts of an element that is too long to be a call."""
        if self.size <= MAX_ELEMENT:
            return []
        parts, self.parts = self.parts, []
        return parts

    def _end(self, text: str, position: int) -> int | None:
        if self._in_tag:
            position = text.find(">", position) + 1
            if not position:
                return None
            self._in_tag = False
        split = (self._tail + text[position : position + len(_CLOSE) - 1]).find(_CLOSE)
        if split >= 0:
            return position + split + len(_CLOSE) - len(self._tail)
        whole = text.find(_CLOSE, position)
        if whole >= 0:
            return whole + len(_CLOSE)
        last = max(position, len(text) - len(_CLOSE) + 1)
        self._tail = (self._tail + text[last:])[1 - len(_CLOSE) :]
        return None


def _call_in(element: str, tools: Collection[str]) -> XmlCall | None:
    """The call in a whole element; None when it is text."""
    tag, _, rest = element.partition(">")
    attributes = {name: double or single for name, double, single in _ATTRIBUTE.findall(tag, len(_OPEN))}
    name = _plain_text(attributes.get("name", ""))
    if name not in tools:
        return None
    try:
        value = load_json(rest.removesuffix(_CLOSE).strip() or "{}")
    except (ValueError, RecursionError):
        return None
    return XmlCall(name, value) if isinstance(value, dict) else None


def _plain_text(value: str) -> str:
    for entity, character in _ENTITIES:
        value = value.replace(entity, character)
    return value
