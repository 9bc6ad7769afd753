"""Reads that the client answers with "unchanged": the content stands in an earlier result of the conversation. Pure.

Claude Code does not repeat a file that it has read before. The service asked for the content, so these words would be
taken for it, and written back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from proxy.core.content import blocks_of, messages_of
from proxy.providers.p5_cursor.bridge.numbered_lines import file_text
from proxy.providers.p5_cursor.bridge.result_text import result_text, with_note

_UNCHANGED = re.compile(
    r"[^\n]{0,40}\bfile (?:is )?unchanged since (?:your |the )?last read\b|"
    r"<system-reminder>\s*+This file is already in your context",
    re.IGNORECASE,
)
#: A path, the first line and the number of lines, None for as many as there are.
_Range = tuple[str, int, int | None]

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
    asked: dict[str, _Range] = {}
    results: list[tuple[_Range, Mapping[str, Any]]] = []
    for block in _blocks(request):
        if block.get("type") == "tool_use" and block.get("name") == "Read":
            wanted = _range(block.get("input"))
            if block.get("id") == tool_use_id:
                return _newest(results, wanted)
            if wanted is not None:
                asked[str(block.get("id"))] = wanted
        elif block.get("type") == "tool_result" and str(block.get("tool_use_id")) in asked:
            results.append((asked[str(block["tool_use_id"])], block))
        elif results and block.get("type") == "text":
            wanted, found = results[-1]
            results[-1] = wanted, with_note(found, [{"content": [block]}])
    return None


def _newest(results: list[tuple[_Range, Mapping[str, Any]]], wanted: _Range | None) -> Any:
    return next(
        (
            block.get("content")
            for asked, block in reversed(results)
            if asked == wanted and not block.get("is_error") and _holds_file(block, asked)
        ),
        None,
    )


def _blocks(request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages_of(request):
        yield from (block for block in blocks_of(message.get("content")) if isinstance(block, Mapping))


def _range(asked: Any) -> _Range | None:
    given = asked if isinstance(asked, Mapping) else {}
    path, offset, limit = (given.get(name) for name in ("file_path", "offset", "limit"))
    if not isinstance(path, str):
        return None
    return path, offset if isinstance(offset, int) else 1, limit if isinstance(limit, int) else None


def _holds_file(block: Mapping[str, Any], wanted: _Range) -> bool:
    """What has no line numbers may be a note in place of an old result."""
    text = result_text(block)
    return file_text(text, wanted[1], wanted[2]).content != text
