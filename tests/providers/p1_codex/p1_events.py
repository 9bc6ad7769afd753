"""Events of P1's upstream, for backends and scripts of a test's own."""

from __future__ import annotations

import json
from typing import Any

CREATED = {"type": "response.created", "response": {"id": "r", "status": "in_progress"}}
LIMITS = {
    "type": "codex.rate_limits",
    "rate_limits": {"limit_reached": True, "primary": {"used_percent": 100, "reset_after_seconds": 600}},
    "credits": {"has_credits": False, "unlimited": False},
}


def delta(text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}


def done(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


def completed(response_id: str = "r", **members: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    response = {"id": response_id, "status": "completed", "output": [], "usage": usage, **members}
    return {"type": "response.completed", "response": response}


def said(text: str, response_id: str) -> list[dict[str, Any]]:
    """A whole answer."""
    return [CREATED, delta(text), done(message(text)), completed(response_id)]


def call_events(command: str, call_id: str, index: int = 0) -> list[dict[str, Any]]:
    """A whole call of Bash."""
    arguments = json.dumps({"command": command})
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "Bash", "arguments": ""}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": index, "delta": arguments},
        done({**item, "arguments": arguments}, index),
    ]


def failure(code: str, status: int = 400, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "status": status, "error": {"code": code, "message": message}}


def failed(**error: Any) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"status": "failed", "error": error or None}}
