"""A raw client of the simulated P1: requests as a correct proxy would send them, to be spoilt by a test."""

from __future__ import annotations

from typing import Any

import aiohttp
from raw_client import RawClient

from proxy.sandbox import Sandbox

LITE = "x-openai-internal-codex-responses-lite"
MARKER = {"ws_request_header_x_openai_internal_codex_responses_lite": "true"}


def tool(name: str, parameter: str = "command", **members: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"type": "function", "name": name, "parameters": schema, "strict": False, **members}


BASH = tool("Bash")
READ = tool("Read", "file_path")


def user(text: str, *images: str) -> dict[str, Any]:
    pictures = [{"type": "input_image", "image_url": url} for url in images]
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}, *pictures]}


def assistant(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def developer(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}


def call(call_id: str, name: str = "Bash", arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, text: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def full(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A body of the full lane."""
    return {
        "model": "gpt-5.5",
        "instructions": "Be brief.",
        "input": list(items) or [user("hello")],
        "parallel_tool_calls": True,
        "store": False,
        "stream": True,
        "text": {"verbosity": "low"},
        **members,
    }


def lite(*items: dict[str, Any], tools: list[dict[str, Any]] | None = None, **members: Any) -> dict[str, Any]:
    """A body of the lite lane; tools travel in the input."""
    offered = [{"type": "additional_tools", "role": "developer", "tools": tools}] if tools else []
    return {
        "model": "gpt-5.6-luna",
        "input": [*offered, *(items or (user("hello"),))],
        "parallel_tool_calls": False,
        "store": False,
        "stream": True,
        "text": {"verbosity": "low"},
        "reasoning": {"context": "all_turns"},
        "client_metadata": dict(MARKER),
        **members,
    }


THINKING = {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}


class Client(RawClient):
    """One session and one signed-in account."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        super().__init__(sandbox, session, sandbox.settings()["PROXY_P1_BASE_URL"])
        self.credential = sandbox.p1.stored_credential()

    def headers(self, body: Any = None) -> dict[str, str]:
        headers = {
            "authorization": f"Bearer {self.credential['access']}",
            "chatgpt-account-id": self.credential["accountId"],
            "content-type": "application/json",
            "accept": "text/event-stream",
            "originator": "codex_cli_rs",
            "user-agent": "codex_cli_rs",
            "openai-beta": "responses=experimental",
            "session-id": "s1",
        }
        on_lite = isinstance(body, dict) and body.get("client_metadata", {}) == MARKER
        return {**headers, LITE: "true"} if on_lite else headers
