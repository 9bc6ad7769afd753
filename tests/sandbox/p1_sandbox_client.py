"""Raw clients of the simulated P1, over HTTP and sockets, and of P3, which speaks the same wire: requests as a correct
proxy would send them, to be spoilt by a test.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from raw_client import RawClient, Reply
from yarl import URL

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


BETA = "responses_websockets=2026-02-06"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # what the standard gives for that key

#: Behind one of these the answer is over.
TERMINALS = ("response.completed", "response.incomplete", "response.failed", "error")

#: Longer than any answer here takes.
PATIENCE_S = 10

HANDSHAKE = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": KEY}


def frame_of(body: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The frame that asks what the body asks over HTTP."""
    kept = {name: value for name, value in body.items() if name != "stream"}
    return {"type": "response.create", **kept, **members}


class Line:
    """One open socket. `pongs` are the payloads that came back."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.pings = 0
        self.pongs: list[bytes] = []

    async def send(self, frame: Any) -> None:
        """`frame`: what becomes JSON, or a text as it is."""
        await self.socket.send_str(frame if isinstance(frame, str) else json.dumps(frame))

    async def ask(self, body: dict[str, Any] | None = None, **members: Any) -> Reply:
        """The answer to the body, up to its terminal event or to the end of the socket."""
        await self.send(frame_of(full() if body is None else body, **members))
        return await self.listen()

    async def listen(self, until: tuple[str, ...] = TERMINALS) -> Reply:
        """`broken` is None after an event of `until`; data holds what was no event; status is the close code."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._listen(until)

    async def _listen(self, until: tuple[str, ...]) -> Reply:
        reply = Reply(0, {}, b"")
        while True:
            message = await self.socket.receive()
            if message.type is aiohttp.WSMsgType.PING:
                self.pings += 1
                await self.socket.pong(message.data)
            elif message.type is aiohttp.WSMsgType.PONG:
                self.pongs.append(bytes(message.data))
            elif message.type is aiohttp.WSMsgType.TEXT and (event := _event(message.data)) is not None:
                reply.events.append(event)
                if event["type"] in until:
                    return reply
            elif message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                data = message.data
                reply.data += data.encode() if isinstance(data, str) else data
            else:
                error = message.data if isinstance(message.data, Exception) else None
                reply.broken, reply.status = error or EOFError(), self.socket.close_code or 0
                return reply


def _event(text: str) -> dict[str, Any] | None:
    try:
        event = json.loads(text)
    except ValueError:
        return None
    assert isinstance(event["type"], str)
    return event


class SocketClient(Client):
    """Upgrades of one signed-in account."""

    def headers(self, body: Any = None, *, lite: bool = False) -> dict[str, str]:
        of_a_body = ("content-type", "accept")
        headers = {name: value for name, value in super().headers().items() if name not in of_a_body}
        return {**headers, "openai-beta": BETA, **({LITE: "true"} if lite else {})}

    @contextlib.asynccontextmanager
    async def open(self, *, lite: bool = False, **options: Any) -> AsyncIterator[Line]:
        async with self.session.ws_connect(
            self.url, headers=self.headers(lite=lite), autoping=False, max_msg_size=0, **options
        ) as socket:
            yield Line(socket)

    async def knock(self, headers: dict[str, str | None] | None = None) -> aiohttp.ClientResponse:
        """The answer to an upgrade, with its body if it was refused; nothing is said afterwards."""
        merged = {**self.headers(), **HANDSHAKE, **(headers or {})}
        sent = {name: value for name, value in merged.items() if value is not None}
        left_out = [name for name, value in merged.items() if value is None]
        url = URL(self.url)
        response = await self.session.get(url, headers=sent, skip_auto_headers=left_out, allow_redirects=False)
        if response.status != 101:
            await response.read()
        response.close()
        return response


def grok(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A body for grok-4.6."""
    return {
        "model": "grok-4.6",
        "instructions": "Be brief.",
        "input": list(items) or [user("hello")],
        "store": False,
        "stream": True,
        "max_output_tokens": 32_000,
        **members,
    }


class P3Client(RawClient):
    """One session and one signed-in account."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        super().__init__(sandbox, session, f"{sandbox.settings()['PROXY_P3_BASE_URL']}/responses")
        self.credential = sandbox.p3.stored_credential()

    def headers(self, body: Any = None) -> dict[str, str]:
        return {
            "authorization": f"Bearer {self.credential['access']}",
            "content-type": "application/json",
            "accept": "text/event-stream",
            "x-xai-token-auth": "xai-grok-cli",
            "x-grok-client-identifier": "grok-shell",
            "x-grok-client-version": "0.2.93",
        }
