"""The mixed requests: which route, model, manner and fault the one with a number has, and sending it."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp

Body = dict[str, Any]


class Transport(NamedTuple):
    """A way to an upstream. `media`: images and recordings go there as well."""

    model: str
    settings: Mapping[str, str] = {}
    media: bool = False


#: In strict mode P1 refuses tools on the chat route, and nothing of that route would reach it.
LENIENT = {"PROXY_OPENAI_MODE": "lenient"}
CONTINUED = {"PROXY_P1_TRANSPORT": "websocket", "PROXY_P1_PREVIOUS_RESPONSE_ID": "1"}
TRANSPORTS = {
    "p1-http": Transport("gpt-5.5", {"PROXY_P1_TRANSPORT": "http"} | LENIENT, media=True),
    "p1-websocket": Transport("gpt-5.5", CONTINUED | LENIENT),
    "p2": Transport("kimi-for-coding"),
    "p3": Transport("grok-4.6"),
    "p4-chat": Transport("opencode-go/kimi-k2.6"),
    "p4-messages": Transport("qwen3.8-flash"),
    "p4-responses": Transport("opencode-go/grok-4.6"),
    "p5": Transport("cursor:gpt-5.5"),
}
#: Conversations of a run. Each may leave a socket that waits (p1), a run that waits for a tool (p5), and an entry in
#: every table; the warm-up has them all.
SESSIONS = 24
MESSAGES, CHAT, RESPONSES, IMAGES = "/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1/images/generations"
TRANSCRIPTIONS = "/v1/audio/transcriptions"
#: Played by the sandbox for a prompt that names one, by whichever of the wires knows it.
FAULTS = ("cut_text", "cut_arguments", "cut_before_output", "cut_frame", "server_error", "rate_limit", "malformed_json")
#: How the client behaves: most read to the end.
MANNERS = ("reads", "reads", "reads", "leaves at once", "leaves at the head", "leaves in the middle", "reads slowly")
#: Other requests than a plain turn.
KINDS = ("plain", "plain", "plain", "tool", "large", "refused", "fault", "fault")
LARGE = 200_000
#: A client that does not come to an end by then counts as an error.
LIMIT_S = 30.0


def script() -> list[Body]:
    """The steps of the sandbox."""
    return [{"fault": name, "times": None, "match": {"contains": f"soak {name} "}} for name in FAULTS]


def schema_tool(path: str) -> Body:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    if path == MESSAGES:
        return {"name": "Bash", "description": "Runs a command.", "input_schema": schema}
    function = {"name": "Bash", "description": "Runs a command.", "parameters": schema}
    return {"type": "function", "function": function} if path == CHAT else {"type": "function", **function}


def body_of(path: str, prompt: str, model: str, stream: bool) -> Body:
    # P5 takes the tools of an OpenAI-style request only where it is streamed.
    tools: Body = {"tools": [schema_tool(path)]} if stream or path == MESSAGES else {}
    members: Body = {"model": model, "stream": stream, **tools}
    if path == RESPONSES:
        return {"input": prompt, **members}
    limit: Body = {"max_tokens": 100} if path == MESSAGES else {}
    return {"messages": [{"role": "user", "content": prompt}], **limit, **members}


class Client:
    """Sends the requests; `seen` counts what became of them. The same seed gives the same requests."""

    def __init__(self, session: aiohttp.ClientSession, url: str, transport: Transport, seed: int) -> None:
        self._session, self._url, self._transport = session, url, transport
        self._chance = random.Random(seed)
        self.seen: Counter[str] = Counter()

    async def send(self, number: int) -> None:
        """One request, or the two of a round with a tool; each fifteenth is about pictures or recordings, where the
        transport has them."""
        chance = random.Random(self._chance.random())
        try:
            async with asyncio.timeout(LIMIT_S):
                if number % 15 == 0 and self._transport.media:
                    await self._media(chance)
                else:
                    await self._turn(number, chance)
        except TimeoutError:
            self.seen["no end"] += 1
        except aiohttp.ClientError as error:
            self.seen[type(error).__name__] += 1

    async def _turn(self, number: int, chance: random.Random) -> None:
        path, model = chance.choice((MESSAGES, MESSAGES, CHAT, RESPONSES)), self._transport.model
        kind, stream = chance.choice(KINDS), chance.random() < 0.7
        prompts = {"tool": "use Bash: ls -la", "large": f"{number} " + "many words " * (LARGE // 11)}
        prompt = prompts.get(kind, f"soak {chance.choice(FAULTS) if kind == 'fault' else 'plain'} {number}")
        body = body_of(path, prompt, model, stream)
        if kind == "refused":
            body["model"], body["tools"] = chance.choice(("nobody", model)), "none"
        session = f"session-{chance.randrange(SESSIONS)}"
        answer = await self._exchange(path, body, session, chance.choice(MANNERS) if kind != "tool" else "reads")
        if kind == "tool" and path == MESSAGES and not stream and answer:
            await self._go_on(body, json.loads(answer), session)

    async def _go_on(self, body: Body, message: Body, session: str) -> None:
        calls = [block for block in message.get("content", ()) if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "done"} for call in calls]
        if results:
            turns = [{"role": "assistant", "content": message["content"]}, {"role": "user", "content": results}]
            await self._exchange(MESSAGES, {**body, "messages": [*body["messages"], *turns]}, session, "reads")

    async def _exchange(self, path: str, body: Body, session: str, manner: str) -> bytes:
        headers = {"x-claude-code-session-id": session}
        asked = self._session.post(self._url + path, json=body, headers=headers)
        if manner == "leaves at once":
            task = asyncio.ensure_future(asked)
            await asyncio.sleep(0.003)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.seen["left at once"] += 1
            return b""
        async with asked as answer:
            self.seen[f"status {answer.status}"] += 1
            if manner == "reads":
                return await answer.read()
            if manner == "reads slowly":
                while await answer.content.read(512):
                    await asyncio.sleep(0.002)
                return b""
            if manner == "leaves in the middle":
                await answer.content.readany()
            answer.close()
            return b""

    async def _media(self, chance: random.Random) -> None:
        if chance.random() < 0.5:
            await self._exchange(IMAGES, {"prompt": "soak"}, "media", chance.choice(MANNERS))
            return
        form = aiohttp.FormData()
        form.add_field("model", "whisper-1")
        form.add_field("file", b"RIFF0000WAVE" + bytes(5000), filename="a.wav", content_type="audio/wav")
        async with self._session.post(self._url + TRANSCRIPTIONS, data=form) as answer:
            self.seen[f"status {answer.status}"] += 1
            await answer.read()
