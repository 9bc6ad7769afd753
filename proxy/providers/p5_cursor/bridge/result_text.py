"""The text of a tool's result. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proxy.core.sse import dump_json


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
