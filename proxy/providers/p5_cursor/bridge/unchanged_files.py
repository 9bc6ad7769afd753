"""Reads that the client answers with "unchanged": the content stands in an earlier result of the conversation. Pure.

Claude Code does not repeat a file that it has read before. The service asked for the content, so these words would be
taken for it, and written back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from proxy.core.content import blocks_of
from proxy.providers.p5_cursor.bridge.numbered_lines import file_text
from proxy.providers.p5_cursor.bridge.result_text import result_text

_UNCHANGED = re.compile(r"[^\n]{0,40}\bfile (?:is )?unchanged since (?:your |the )?last read\b", re.IGNORECASE)
#: The client says no more than this.
MAX_WORDS = 500

UNCHANGED_WORDS = (
    "The client did not send the content, as it has not changed since an earlier read that is no longer at hand. Read"
    " it with the shell tool (cat) or in another range of lines."
)


def is_unchanged(text: str) -> bool:
    """
    >>> is_unchanged("File unchanged since last read. The content from the earlier Read tool_result is still current.")
    True
    """
    return len(text) <= MAX_WORDS and _UNCHANGED.match(text) is not None


def earlier_content(request: Mapping[str, Any], tool_use_id: str) -> Any:
    """The content of the newest earlier result for the same range of the same file; None when there is none that holds
    the file. One pass over the history."""
    ranges: dict[str, tuple[Any, ...]] = {}
    contents: dict[tuple[Any, ...], Any] = {}
    for block in _blocks(request):
        kind = block.get("type")
        if kind == "tool_use" and block.get("name") == "Read" and isinstance(block.get("input"), Mapping):
            asked = ranges[str(block.get("id"))] = _range(block["input"])
            if block.get("id") == tool_use_id:
                return contents.get(asked)
        elif kind == "tool_result" and not block.get("is_error") and str(block.get("tool_use_id")) in ranges:
            asked = ranges[str(block["tool_use_id"])]
            if _holds_file(block, asked):
                contents[asked] = block.get("content")
    return None


def _blocks(request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, Mapping):
            yield from (block for block in blocks_of(message.get("content")) if isinstance(block, Mapping))


def _range(asked: Mapping[str, Any]) -> tuple[Any, ...]:
    path, offset, limit = (asked.get(name) for name in ("file_path", "offset", "limit"))
    return str(path), offset if isinstance(offset, int) else 1, limit if isinstance(limit, int) else None


def _holds_file(block: Mapping[str, Any], asked: tuple[Any, ...]) -> bool:
    """What has no line numbers may be a note in place of an old result."""
    text = result_text(block)
    return file_text(text, asked[1], asked[2]).content != text
