"""A raw client of the simulated P4, on all of its wires."""

from __future__ import annotations

from typing import Any

import aiohttp
from p2_sandbox_client import user
from raw_client import RawClient

from proxy.sandbox import Sandbox

BASH = {
    "name": "Bash",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
READ = {
    "name": "Read",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
}


def go_chat(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A body for the chat wire."""
    return {
        "model": "glm-5.2",
        "messages": list(messages) or [user("hello")],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 32_000,
        **members,
    }


def go_messages(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A body for the messages wire."""
    return {
        "model": "minimax-m3",
        "messages": list(messages) or [user("hello")],
        "stream": True,
        "max_tokens": 32_000,
        **members,
    }


def go_responses(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A body for the responses wire."""
    default = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    return {
        "model": "gpt-5.6-luna",
        "instructions": "Be brief.",
        "input": list(items) or [default],
        "store": False,
        "stream": True,
        "parallel_tool_calls": True,
        "text": {"verbosity": "low"},
        "prompt_cache_key": "s1",
        "max_output_tokens": 2_048,
        **members,
    }


BODIES = {"chat": go_chat, "messages": go_messages, "responses": go_responses}


class P4Client(RawClient):
    """One session and one key. The wire is that of the body."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        super().__init__(sandbox, session, sandbox.settings()["PROXY_P4_BASE_URL"])
        self.key = sandbox.settings()["PROXY_P4_API_KEY"]
        self.wire: str | None = None  # asked of in spite of the body

    def address(self, body: Any) -> str:
        path = {"chat": "chat/completions"}.get(self.wire_of(body), self.wire_of(body))
        return f"{self.url}/{path}"

    def wire_of(self, body: Any) -> str:
        if self.wire is not None or not isinstance(body, dict):
            return self.wire or "chat"
        if "input" in body:
            return "responses"
        return "messages" if str(body.get("model")).startswith("minimax") else "chat"

    def headers(self, body: Any = None) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "model-proxy/1.0",
            "x-opencode-session": "s1",
        }
        if isinstance(body, dict) and not body.get("stream"):
            headers["accept"] = "application/json"
        if self.wire_of(body) == "messages":
            return {**headers, "x-api-key": self.key, "anthropic-version": "2023-06-01"}
        return {**headers, "authorization": f"Bearer {self.key}"}
