"""Clients of several replicas: sessions with tools, and what became of each request."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from e2e.balancers import Replica
from e2e.expecting import expect

MODEL = "gpt-5.5"
MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"
#: The header by which each way to ask names its conversation.
SESSION_HEADERS = (
    (MESSAGES, "x-claude-code-session-id"),
    (MESSAGES, "x-agent-session-id"),
    (RESPONSES, "session_id"),
    (RESPONSES, "x-client-request-id"),
)
_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
_LOG_LIMIT_S = 20.0


@dataclass(slots=True)
class Told:
    """What a client got. `broken`: the name of what its connection ended with, "" where nothing broke."""

    status: int = 0
    text: str = ""
    request_id: str = ""
    broken: str = ""

    @property
    def whole(self) -> bool:
        # The beginning of a stream has the type of a whole answer, too.
        wholes = ('"type":"message"', '"object":"response"') if self.text.startswith("{") else ("event: message_stop",)
        return self.status == 200 and not self.broken and any(whole in self.text for whole in wholes)

    @property
    def may_be_repeated(self) -> bool:
        """Whether every client takes it for a failure that passes: a connection that broke, or a status of 5xx."""
        return bool(self.broken) or self.status >= 500 or (self.status == 200 and "event: error" in self.text)


async def post(client: aiohttp.ClientSession, url: str, body: Any, headers: dict[str, str]) -> Told:
    told = Told()
    try:
        async with client.post(url, json=body, headers=headers) as answer:
            told.status, told.request_id = answer.status, answer.headers.get("request-id", "")
            async for data in answer.content.iter_any():
                told.text += data.decode(errors="replace")
    except aiohttp.ClientError as error:
        told.broken = type(error).__name__
    return told


@dataclass(slots=True)
class Session:
    """One conversation: `items` are its messages, or the input of Responses; `told` the answers so far."""

    number: int
    told: list[Told] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)

    @property
    def route(self) -> str:
        return SESSION_HEADERS[self.number % len(SESSION_HEADERS)][0]

    @property
    def headers(self) -> dict[str, str]:
        return {SESSION_HEADERS[self.number % len(SESSION_HEADERS)][1]: f"conversation-{self.number}"}

    async def says(self, client: aiohttp.ClientSession, url: str, prompt: str) -> Told:
        self.items.append({"role": "user", "content": prompt})
        return await self._ask(client, url)

    async def round(self, client: aiohttp.ClientSession, url: str, command: str) -> None:
        """A prompt that calls a tool, and what the model makes of its result."""
        await self.says(client, url, f"use Bash: {command}")
        if self.route == RESPONSES:
            call = next(item for item in reversed(self.items) if item.get("type") == "function_call")
            self.items.append({"type": "function_call_output", "call_id": call["call_id"], "output": f"done {command}"})
        else:
            call = next(block for block in self.items[-1]["content"] if block["type"] == "tool_use")
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"done {command}"}
            self.items.append({"role": "user", "content": [result]})
        await self._ask(client, url)

    async def _ask(self, client: aiohttp.ClientSession, url: str) -> Told:
        if self.route == RESPONSES:
            tool = {"type": "function", "name": "Bash", "description": "Runs a command.", "parameters": _SCHEMA}
            body: Any = {"model": MODEL, "input": self.items, "tools": [tool]}
        else:
            tool = {"name": "Bash", "description": "Runs a command.", "input_schema": _SCHEMA}
            body = {"model": MODEL, "max_tokens": 500, "messages": self.items, "tools": [tool]}
        told = await post(client, url + self.route, body, self.headers)
        expect(told.whole, f"an answer for {self.headers}", told)
        answer = json.loads(told.text)
        said = answer["output"] if self.route == RESPONSES else [{"role": "assistant", "content": answer["content"]}]
        self.items += said
        self.told.append(told)
        return told


async def stream(client: aiohttp.ClientSession, url: str, session: int, words: int) -> Told:
    """An answer of so many deltas to a session of its own."""
    body = {
        "model": MODEL,
        "max_tokens": 4000,
        "stream": True,
        "messages": [{"role": "user", "content": f"stream {words} words"}],
    }
    return await post(client, url + MESSAGES, body, {"x-claude-code-session-id": f"conversation-{session}"})


async def places(replicas: Sequence[Replica], told: Sequence[Told]) -> list[int]:
    """Which replica served each, by the request's id. Raises AssertionError for one that nobody served."""
    end = time.monotonic() + _LOG_LIMIT_S
    while True:
        served = [await one.served() for one in replicas]
        found = [[number for number, ids in enumerate(served) if one.request_id in ids] for one in told]
        if all(len(one) == 1 for one in found):
            return [one[0] for one in found]
        expect(time.monotonic() < end, "each request was served by one replica", found)
        await asyncio.sleep(0.1)
