"""The text of a tool's result. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from proxy.core.content import blocks_of, texts_of
from proxy.core.sse import dump_json

#: Newer versions of Claude Code say beside the result of a Read that it is not the whole file: in a reminder, or in the
#: next message of the role system.
_PARTIAL = re.compile(r"^(?:<system-reminder>)?\[Truncated: PARTIAL view[^\n]*", re.MULTILINE)


def result_text(block: Mapping[str, Any]) -> str:
    """The text of a `tool_result` block.

    >>> result_text({"content": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]})
    'a\\n[image result omitted]'
    """
    return "\n".join(_texts(block.get("content")))


def _texts(content: Any) -> Iterator[str]:
    for part in content if isinstance(content, list) else [] if content is None else [content]:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(part, str):
            yield part
        elif kind == "image":
            yield "[image result omitted]"
        elif kind in ("text", "thinking") and isinstance(part.get(kind), str):
            yield part[kind]
        else:
            yield dump_json(part)


def with_note(block: Mapping[str, Any], messages: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The block with the client's note that it is not the whole file, when there is one in the messages, its own and
    those behind it. The note is put where older versions have it, into the result."""
    for message in messages:
        for text in texts_of(message.get("content")) if message.get("role") != "assistant" else ():
            if (note := _PARTIAL.search(text)) is not None:
                words = note[0].removeprefix("<system-reminder>").removesuffix("</system-reminder>")
                part = {"type": "text", "text": f"\n<system-reminder>{words}</system-reminder>"}
                return {**block, "content": [*blocks_of(block.get("content")), part]}
    return block
