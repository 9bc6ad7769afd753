"""Answers that are damaged at each class of their bytes, for each wire and route, streamed and whole; all rows are
judged by one rule (`byte_rule`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientPayloadError
from byte_places import Places, places, socket_places
from byte_rule import MESSAGES, Content, content_of, judge, passed_on
from byte_tapes import DAMAGES, Row, Tapes
from harness import Answer, Live, ask, configured, until
from openai_live import CHAT, RESPONSES, body_for, function
from wires import BODY_WIRES, TOOLS, Wire

from proxy.providers.p1_codex.socket.keepalive import SocketTimers
from proxy.providers.upstream.transport import HttpTimers
from proxy.sandbox import Sandbox
from proxy.server.state import STATE

#: What an answer is made of: characters of four bytes, escapes, arguments with both.
PROMPTS = {
    "text": 'say <<<Grüße 😀 "quoted" und \\ mehr Worte>>>',
    "call": 'use Bash: {"command": "lsa \\"q\\" \\\\ grün"}',
}
#: wire -> the address of its answers
PATHS = {
    "p1-websocket": "/backend-api/codex/responses",
    "p1-responses": "/backend-api/codex/responses",
    "p2-chat": "/coding/v1/chat/completions",
    "p3-responses": "/v1/responses",
    "p4-chat": "/zen/go/v1/chat/completions",
    "p4-messages": "/zen/go/v1/messages",
    "p4-responses": "/zen/go/v1/responses",
}
P1 = Wire("p1", "responses", "gpt-5.5")
SOCKET = Wire("p1", "websocket", "gpt-5.5")
#: A stall in front of the body lasts until the limit of the head, which only p1 has as a setting.
IN_FRONT = ("status line", "header")
TOGETHER = 16
BOUND_S = 6.0
ROUTES = [(path, stream) for path in (MESSAGES, CHAT, RESPONSES) for stream in (True, False)]


@dataclass
class Table:
    """A proxy in front of tapes of one wire."""

    wire: Wire
    live: Live
    tapes: Tapes
    good: dict[str, tuple[bytes, Places]] = field(default_factory=dict)

    async def answer(self, path: str, stream: bool, prompt: str) -> Answer:
        members: dict[str, Any] = {"model": self.wire.model, "stream": stream}
        if path == MESSAGES:
            return await self.live.post(ask(prompt, tools=TOOLS, **members), path)
        return await self.live.post(body_for(path, prompt, tools=[function(path)], **members), path)

    async def record(self) -> None:
        address = PATHS[self.wire.name]
        for name, prompt in PROMPTS.items():
            kept = self.tapes.keep[address] = []
            answer = await self.answer(MESSAGES, True, prompt)
            assert answer.status == 200, answer.raw
            self.good[name] = kept[0], places(kept[0], "responses" if self.wire == SOCKET else self.wire.kind)
        if self.wire == SOCKET:
            self.good = {"text": socket_places(self.good["text"][0])}
            self.live.config = configured(self.live.config, p1_transport="websocket")

    async def content(self, number: int, path: str, stream: bool, name: str) -> Content | None:
        native = self.wire == P1 and path == RESPONSES and stream
        try:
            async with asyncio.timeout(BOUND_S):
                answer = await self.answer(path, stream, f"row-{number}- {PROMPTS[name]}")
        except ClientPayloadError:
            assert native, "the transfer broke off"
            return None  # what clients of that route take for a failure, and repeat
        return passed_on(answer) if native else content_of(path, answer, stream)

    def rows(self, path: str) -> Iterator[tuple[str, str, Row]]:
        """Name, prompt and row of each damage at each class; on the other routes than Messages, which share all but the
        form, one damage a class in turn."""
        number = 0
        for prompt, (tape, found) in self.good.items():
            for place, at in found.classes.items():
                if prompt == "call" and not place.startswith("in "):
                    continue  # the same bytes as in the text
                number += 1
                for damage in DAMAGES if path == MESSAGES else (DAMAGES[number % len(DAMAGES)],):
                    if damage != "stall" or place not in IN_FRONT or self.wire == P1:
                        yield f"{prompt}: {damage} {place}", prompt, Row(tape, at, damage)

    def idle(self) -> bool:
        """Whether nothing is left of any request."""
        return not self.tapes.busy and not +self.live.app[STATE].admission.counts


@pytest.fixture
async def table(sandbox: Sandbox, tmp_path: Path, wire: Wire) -> AsyncIterator[Table]:
    async with Tapes(sandbox.port) as tapes:
        here, there = f":{sandbox.port}", f":{tapes.port}"
        settings = {
            key: value.replace(here, there) if "BASE" in key else value for key, value in sandbox.settings().items()
        }
        tuning = (HttpTimers(idle=0.15, after_end=0.05), SocketTimers(start=0.15, idle=0.15, close=0.05))
        async with Live(
            sandbox,
            tmp_path,
            settings=settings,
            tuning=tuning,
            openai_routes=True,
            openai_mode="lenient",
            p1_header_timeout_ms=400,
        ) as live:
            made = Table(wire, live, tapes)
            await made.record()
            yield made


@pytest.mark.parametrize("wire", [P1, SOCKET, *BODY_WIRES], ids=str)
async def test_a_damaged_answer_is_an_error_or_the_good_one(table: Table, wire: Wire) -> None:
    numbers, failures = iter(range(1, 1_000_000)), []
    gate = asyncio.Semaphore(TOGETHER)

    async def run(path: str, stream: bool, name: str, prompt: str, row: Row, good: Content) -> None:
        async with gate:
            number = next(numbers)
            table.tapes.rows[number] = row
            try:
                judge(row, table.good[prompt][1].complete, good, await table.content(number, path, stream, prompt))
            except Exception as error:
                failures.append(f"{wire} {path} {'streamed' if stream else 'whole'} {name}: {error!r}"[:400])

    async with asyncio.TaskGroup() as group:
        for path, stream in ROUTES:
            if wire == SOCKET and path == RESPONSES:
                continue  # always HTTP
            expected: dict[str, Content] = {}
            for prompt, (tape, _) in table.good.items():
                number = next(numbers)
                table.tapes.rows[number] = Row(tape, len(tape), "")
                found = await table.content(number, path, stream, prompt)
                assert found is not None and any(found)
                expected[prompt] = found
            for name, prompt, row in table.rows(path):
                group.create_task(run(path, stream, name, prompt, row, expected[prompt]))
    assert not failures, "\n".join(sorted(failures))
    await until(table.idle)
    assert not table.live.notes.all("internal_error")
