"""Estimates the tokens of a request for upstreams whose vocabulary is not public, by counting words and punctuation.

For ASCII this is exactly the formula that earlier proxies used. That one counts a whole run of letters as one token, so
that a page of Chinese is one and the client never compacts. So a run with letters outside of ASCII counts one for each
of them. A run without blanks (base64, digits, minified code) counts at least one for every four characters after the
first twenty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from proxy.core.content import (
    BILLING_PREFIX,
    TOOL_CHANGES,
    change_text,
    document_blocks,
    omitted,
    reference_text,
    without_links,
)
from proxy.core.long_json import Remembered
from proxy.core.search.history import is_search, search_text
from proxy.core.sse import dump_json
from proxy.core.tokens.counting import IMAGE_TOKENS, Length, encrypted_tokens, pdf_tokens
from proxy.core.tools.calls import input_text
from proxy.core.tools.schema import format_in_words

#: Tokens of a message in addition to its content.
MESSAGE_OVERHEAD = 4

#: Characters that one call counts: 5 ms for a script without blanks.
MAX_PIECE = 32_768

_WORD, _BLANK, _MARK = b"w", b" ", b"."
#: ASCII -> its kind: part of a word, blank, or a mark
_KINDS = (
    b"".join(
        _WORD if chr(code).isalnum() or chr(code) in "-_" else _BLANK if chr(code) in " \t\n\v\f\r" else _MARK
        for code in range(128)
    )
    + _MARK * 128
)
_ANY_KIND = bytes.maketrans(_MARK, _WORD)
#: A run without blanks costs at least its length beyond `SHORT_RUN`, divided by `RUN_CHARACTERS_A_TOKEN`.
SHORT_RUN = 20
RUN_CHARACTERS_A_TOKEN = 4
#: The shortest run for which that is more than the one token that every run costs.
_LONG = _WORD * (SHORT_RUN + RUN_CHARACTERS_A_TOKEN + 1)
#: A word, a mark, or one of the separators that only Python counts as blanks.
_PIECE = re.compile(r"[\w-]+|[^\w\s-]|[\x1c-\x1f]")


def heuristic_tokens(text: str) -> int:
    """Estimated tokens of a text: its words and punctuation marks. 0 for an empty text, else at least 1.

    >>> heuristic_tokens("foo_bar-baz, qux!"), heuristic_tokens('{"q":"rust"}'), heuristic_tokens("日本語のテキスト")
    (4, 9, 8)
    >>> heuristic_tokens("7" * 20), heuristic_tokens("7" * 24), heuristic_tokens("7" * 6000)
    (1, 1, 1495)
    """
    if len(text) <= MAX_PIECE:
        return max(1, _tokens(text)) if text else 0
    return max(1, sum(map(_tokens, _cut(text))))


def _tokens(text: str) -> int:
    kinds = text.encode("ascii", "replace").translate(_KINDS)
    if text.isascii():  # nearly always: without a string a word
        return _counted(kinds) + _beyond_short(kinds, lambda start, end: _counted(kinds[start:end]))
    return _foreign(text) + _beyond_short(kinds, lambda start, end: _foreign(text[start:end]))


def _cut(text: str) -> Iterator[str]:
    """Yields a long text in pieces, since counting one blocks all other threads. They end at a blank, which changes no
    count; a run that is longer than a piece is cut, which changes the count by a few tokens."""
    start = 0
    while start < len(text):
        end = start + MAX_PIECE
        if end < len(text):
            blank = max(text.rfind(" ", start + 1, end), text.rfind("\n", start + 1, end))
            end = end if blank < 0 else blank
        yield text[start:end]
        start = end


def _counted(kinds: bytes) -> int:
    """Number of words and marks."""
    words = kinds.count(b" w") + kinds.count(b".w") + kinds.startswith(_WORD)
    return kinds.count(_MARK) + words


def _beyond_short(kinds: bytes, counted: Callable[[int, int], int]) -> int:
    """Tokens of long runs beyond their words and marks, which `counted` returns for a slice. It finds only long runs,
    since most texts have few, and counts them only if their marks alone are too few."""
    runs = kinds.translate(_ANY_KIND)
    more = 0
    start = runs.find(_LONG)
    while start >= 0:
        end = runs.find(_BLANK, start)
        end = len(runs) if end < 0 else end
        least = -((SHORT_RUN - end + start) // RUN_CHARACTERS_A_TOKEN)
        if kinds.count(_MARK, start, end) < least:
            more += max(0, least - counted(start, end))
        start = runs.find(_LONG, end)
    return more


def _foreign(text: str) -> int:
    """Number of words, marks, and letters outside of ASCII."""
    found = _PIECE.findall(text)
    foreign = [piece for piece in found if not piece.isascii()]
    letters = sum(map(len, foreign)) - len("".join(foreign).encode("ascii", "ignore"))
    return len(found) - len(foreign) + letters


def heuristic_count(request: Mapping[str, Any], length: Length = heuristic_tokens, *, native: bool = False) -> int:
    """Input tokens of a Messages request, of any shape that `check_request` accepts.

    length  `heuristic_tokens`, or a version with a memory
    native  whether blocks are sent unchanged: PDFs, citations, encrypted thoughts
    """
    messages = request.get("messages") or ()
    total = _system(request.get("system"), length) + MESSAGE_OVERHEAD * len(messages)
    for message in messages:
        total += _content(message.get("content"), length, native)
    total += length(format_in_words(request))
    tools = request.get("tools")
    return total + sum(_tool(tool) for tool in (tools if isinstance(tools, list) else ()) if isinstance(tool, dict))


def _tokens_of(value: Any, length: Length) -> int:
    return length(value) if isinstance(value, str) else 0


def _system(system: Any, length: Length) -> int:
    if isinstance(system, str):
        return length(system)
    members = [member.get("text") for member in system if isinstance(member, dict)] if isinstance(system, list) else []
    return sum(length(text) for text in members if isinstance(text, str) and not text.startswith(BILLING_PREFIX))


def _content(content: Any, length: Length, native: bool) -> int:
    if not isinstance(content, list):
        return _tokens_of(content, length)
    total = 0
    for block in content:  # an agent sends hundreds: a generator takes a fifth of the time
        if isinstance(block, dict):
            total += _block(block, length, native)
    return total


def _block(block: dict[str, Any], length: Length, native: bool) -> int:
    kind = block.get("type")
    if kind in ("text", "thinking"):
        return _tokens_of(block.get(kind), length) + (_citations(block, length) if native else 0)
    if kind == "tool_use":
        return _tokens_of(block.get("name"), length) + length(input_text(block.get("input", {})))
    if kind == "tool_result":
        return _content(block.get("content"), length, native)
    if kind in ("image", "video"):
        return IMAGE_TOKENS
    if kind in ("document", "search_result"):
        return _document(block, length, native)
    if kind == "redacted_thinking" and native:
        return encrypted_tokens(block["data"]) if isinstance(block.get("data"), str) else 0
    if is_search(block):
        return length(search_text(block))
    if kind == "tool_reference":
        return length(reference_text(block))
    return length(change_text(block)) if kind in TOOL_CHANGES else 0


def _citations(block: dict[str, Any], length: Length) -> int:
    cited = without_links(block).get("citations") if "citations" in block else None
    return length(dump_json(cited)) if cited else 0


def _document(block: dict[str, Any], length: Length, native: bool) -> int:
    parts = document_blocks(block)
    if parts:
        return _content(parts, length, native)
    source = block.get("source")
    data = source.get("data") if isinstance(source, dict) else None
    return pdf_tokens(data) if native and isinstance(data, str) else length(omitted(block))


def _count_tool(tool: Mapping[str, Any]) -> int:
    schema = tool.get("input_schema")
    form = heuristic_tokens(dump_json(schema)) if isinstance(schema, dict) else 0
    texts = tool.get("name"), tool.get("description")
    return form + sum(_tokens_of(text, heuristic_tokens) for text in texts)


_tool = Remembered(_count_tool)
