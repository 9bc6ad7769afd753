"""A raw client of the sockets of the simulated P1: upgrades and frames as a correct proxy would send them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from p1_sandbox_client import LITE, Client, full
from raw_client import Reply
from yarl import URL

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
