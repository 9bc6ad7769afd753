"""Events of a Messages stream, for tests that write some by hand."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]

#: delta type -> its member
MEMBERS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}
_STARTS: dict[str, Event] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"id": "t", "name": "Bash", "input": {}},
    "web_search_tool_result": {"tool_use_id": "s", "content": []},
}


def opened(kind: str = "text", index: int = 0, **members: Any) -> Event:
    block = {"type": kind, **_STARTS[kind], **members}
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(value: str = "a", kind: str = "text_delta", index: int = 0) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, MEMBERS[kind]: value}}


def closed(index: int = 0) -> Event:
    return {"type": "content_block_stop", "index": index}
