"""A raw client of the simulated P1: requests as a correct proxy would send them, to be spoilt by a test."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import aiohttp

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


@dataclass
class Reply:
    """`broken` is the error with which the body ended, if it did not end well."""

    status: int
    headers: Any
    data: bytes
    broken: Exception | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def final(self) -> dict[str, Any]:
        return self.events[-1]["response"]

    @property
    def items(self) -> list[dict[str, Any]]:
        return [event["item"] for event in self.of("response.output_item.done")]

    @property
    def text(self) -> str:
        return "".join(event["delta"] for event in self.of("response.output_text.delta"))


class Client:
    """One session and one signed-in account."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        self.sandbox = sandbox
        self.session = session
        self.credential = sandbox.p1.stored_credential()
        self.url = sandbox.settings()["PROXY_P1_BASE_URL"]

    def headers(self, *, lite: bool = False) -> dict[str, str]:
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
        return {**headers, LITE: "true"} if lite else headers

    def post(self, body: Any, headers: dict[str, str | None] | None = None) -> Any:
        """The request as a context manager. A header of None is left out."""
        on_lite = isinstance(body, dict) and body.get("client_metadata", {}) == MARKER
        merged = {**self.headers(lite=on_lite), **(headers or {})}
        sent = {name: value for name, value in merged.items() if value is not None}
        data = body if isinstance(body, bytes) else json.dumps(body)
        return self.session.post(self.url, data=data, headers=sent, allow_redirects=False)

    async def ask(self, body: Any, headers: dict[str, str | None] | None = None) -> Reply:
        """The whole answer, however it ends."""
        async with self.post(body, headers) as response:
            data, broken = b"", None
            try:
                async for chunk in response.content.iter_any():
                    data += chunk
            except (aiohttp.ClientError, ConnectionError) as error:
                broken = error
            reply = Reply(response.status, response.headers, data, broken)
        if response.content_type == "text/event-stream":
            reply.events = list(parse(data))
        return reply


def parse(data: bytes) -> Any:
    """The events of whole, well-formed frames."""
    for block in data.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
        try:
            event = json.loads(fields[b"data"])
        except (KeyError, ValueError):
            continue
        assert fields.get(b"event", b"").decode() in (event["type"], "")
        yield event
