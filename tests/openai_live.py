"""A proxy with its OpenAI-style routes, and how its answers are read."""

from __future__ import annotations

import json
from typing import Any

from harness import Answer, Live

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
BOTH = (CHAT, RESPONSES)
P1, P2, P3 = "gpt-5.5", "kimi-for-coding", "grok-4.6"


def body_for(path: str, prompt: str = "hello", model: str = P2, **members: Any) -> dict[str, Any]:
    """A request for either route."""
    if path == CHAT:
        return {"model": model, "messages": [{"role": "user", "content": prompt}], **members}
    return {"model": model, "input": prompt, **members}


def function(path: str, name: str = "Bash", parameter: str = "command") -> dict[str, Any]:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    described = {"name": name, "description": f"{name} does things.", "parameters": schema}
    return {"type": "function", "function": described} if path == CHAT else {"type": "function", **described}


def error_of(answer: Answer) -> dict[str, Any]:
    """The inner error of an OpenAI envelope, whose form is checked."""
    assert set(answer.json) == {"error"}
    error: dict[str, Any] = answer.json["error"]
    assert {"message", "type", "param", "code"} <= set(error) and error["message"]
    assert answer.headers["x-request-id"]
    return error


def chunks_of(answer: Answer) -> list[dict[str, Any]]:
    """The chunks of a chat stream, which must end with [DONE]."""
    frames = answer.raw.decode().split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""], frames[-3:]
    return [json.loads(frame.removeprefix("data: ")) for frame in frames[:-2] if not frame.startswith(":")]


async def ask_both(live: Live, path: str, prompt: str = "hello", **members: Any) -> Answer:
    return await live.post(body_for(path, prompt, **members), path)
