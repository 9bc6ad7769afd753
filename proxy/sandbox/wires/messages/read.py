"""A Messages body, once it passed the checks, as an `Ask` for the model; and its size in tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.sandbox.model.pieces import estimate_tokens
from proxy.sandbox.model.reply import Ask, Called, Entry, Returned, Said, Tool


def read_messages(body: Mapping[str, Any]) -> Ask:
    """The request in the model's own terms. It thinks when `thinking` says so, at whatever effort."""
    choice = body.get("tool_choice") or {"type": "auto"}
    choices = {"any": "required", "tool": choice.get("name", "")}
    thinking = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    config = body.get("output_config") or {}
    return Ask(
        entries=[entry for message in body["messages"] for entry in _entries(message)],
        system=_text(body.get("system") or ""),
        tools=[Tool(tool["name"], tool["input_schema"]) for tool in body.get("tools") or ()],
        choice=choices.get(choice["type"], choice["type"]),
        parallel=not choice.get("disable_parallel_tool_use"),
        effort=config.get("effort", "high") if thinking else None,
        schema=(config.get("format") or {}).get("schema"),
    )


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """What the request counts, roughly."""
    return estimate_tokens(body.get("system"), body.get("messages"), body.get("tools"))


def prompt_parts(body: Mapping[str, Any]) -> list[Any]:
    """The request in the order in which the model reads it."""
    system = body.get("system") or ()
    return [*(body.get("tools") or ()), *([system] if isinstance(system, str) else system), *body["messages"]]


def _entries(message: Mapping[str, Any]) -> list[Entry]:
    """Calls and results, with what is said around them as one entry behind the results and before the calls."""
    content = message["content"]
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    results: list[Entry] = []
    calls: list[Entry] = []
    for block in blocks:
        if block["type"] == "tool_result":
            inner = block.get("content") or ""
            results.append(Returned(block["tool_use_id"], _text(inner), _images(inner)))
        elif block["type"] == "tool_use":
            calls.append(Called(block["id"], block["name"]))
    text, images = _text(blocks), _images(blocks)
    said: list[Entry] = [Said(message["role"], text, images)] if text or images else []
    return [*results, *said, *calls]


def _text(content: Any) -> str:
    """The texts joined by line ends."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _images(content: Any) -> tuple[str, ...]:
    """The kind of each picture."""
    if isinstance(content, str):
        return ()
    sources = [block["source"] for block in content if block["type"] == "image"]
    return tuple(source["media_type"] if source["type"] == "base64" else "url" for source in sources)
