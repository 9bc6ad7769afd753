"""The requests of the benchmark."""

from __future__ import annotations

import json
from typing import Any

Body = dict[str, Any]
MODEL = "gpt-5.5"
_WORDS = (
    "the",
    "agent",
    "reads",
    "a",
    "file",
    "then",
    "edits",
    "it",
    "and",
    "runs",
    "all",
    "tests",
    "until",
    "they",
    "pass",
)


def tiny() -> Body:
    return {"model": MODEL, "max_tokens": 64, "stream": True, "messages": [{"role": "user", "content": "hello"}]}


def agent(size: int = 86_000) -> Body:
    """What a coding agent sends each turn: system prompt, two dozen tools, a history with tool results."""
    messages: list[Body] = [{"role": "user", "content": [{"type": "text", "text": prose(120, 0)}]}]
    body: Body = {
        "model": MODEL,
        "max_tokens": 32000,
        "stream": True,
        "system": [{"type": "text", "text": prose(1800, 7), "cache_control": {"type": "ephemeral"}}],
        "tools": [_tool(number) for number in range(24)],
        "messages": messages,
        "thinking": {"type": "adaptive"},
    }
    turn = 0
    while len(json.dumps(body)) < size:
        turn += 1
        call = {
            "type": "tool_use",
            "id": f"call_{turn}",
            "name": "Tool3",
            "input": {"path": f"/src/{turn}.py", "line": turn},
        }
        result = {"type": "tool_result", "tool_use_id": f"call_{turn}", "content": prose(150, turn)}
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": prose(20, turn)}, call]},
            {"role": "user", "content": [result]},
        ]
    messages.append({"role": "user", "content": "hello"})
    return body


def prose(count: int, seed: int) -> str:
    return " ".join(_WORDS[(seed + step * 7) % len(_WORDS)] for step in range(count))


def _tool(number: int) -> Body:
    properties = {
        name: {"type": kind, "description": prose(14, number + place)}
        for place, (name, kind) in enumerate(
            (("path", "string"), ("line", "integer"), ("text", "string"), ("all", "boolean"))
        )
    }
    schema = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    return {"name": f"Tool{number}", "description": prose(150, number), "input_schema": schema}
