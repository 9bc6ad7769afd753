"""A raw client of the simulated P2, and what is needed to speak and read chat completions."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
from raw_client import RawClient, Reply

from proxy.sandbox import Sandbox

DEVICE = {
    "x-msh-platform": "kimi_code_cli",
    "x-msh-version": "2.1.0",
    "x-msh-device-name": "host",
    "x-msh-device-model": "Linux 6.8.0 x64",
    "x-msh-os-version": "6.8.0",
}


def tool(name: str, parameter: str = "command") -> dict[str, Any]:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": schema}}


def with_property(schema: Any) -> dict[str, Any]:
    """A tool with one property `mode` of that schema."""
    parameters = {"type": "object", "properties": {"mode": schema}}
    return {"type": "function", "function": {"name": "set", "parameters": parameters}}


BASH = tool("Bash")
READ = tool("Read", "file_path")

TEXT = {"type": "text", "text": "seen"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
VIDEO = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,aGk="}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def system(content: Any) -> dict[str, Any]:
    return {"role": "system", "content": content}


def call(call_id: str, name: str = "Bash", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def called(*calls: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"role": "assistant", "reasoning_content": ".", "tool_calls": list(calls), **members}


def answer(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A body for P2; a member of None is left out."""
    body = {
        "model": "kimi-for-coding",
        "messages": list(messages) or [user("hello")],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 32_000,
        "thinking": {"type": "enabled", "effort": "high", "keep": "all"},
        "prompt_cache_key": "s1",
        **members,
    }
    return {name: value for name, value in body.items() if value is not None}


def replay(reply: Reply, **changes: Any) -> dict[str, Any]:
    """The assistant message that a client sends back."""
    calls = [
        call(call_id, name, json.dumps(arguments))
        for call_id, (name, arguments) in zip(reply.ids, reply.calls, strict=True)
    ]
    message = {"role": "assistant", "content": reply.text or None, "reasoning_content": reply.thought}
    return {**message, "tool_calls": calls, **changes} if calls else {**message, **changes}


class P2Client(RawClient):
    """One session and one signed-in device."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        super().__init__(sandbox, session, sandbox.settings()["PROXY_P2_BASE_URL"])
        self.credential = sandbox.p2.stored_credential()

    def address(self, body: Any) -> str:
        return f"{self.url}/chat/completions"

    def device(self) -> dict[str, str]:
        return {**DEVICE, "x-msh-device-id": self.sandbox.p2.options.device_id, "user-agent": "kimi-code-cli/2.1.0"}

    def headers(self, body: Any = None) -> dict[str, str]:
        return {
            **self.device(),
            "authorization": f"Bearer {self.credential['access']}",
            "content-type": "application/json",
            "accept": "application/json",
        }
