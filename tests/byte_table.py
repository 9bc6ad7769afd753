"""A proxy in front of tapes of one wire, and the table of what becomes of their damages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientPayloadError
from byte_places import HTTP_PLACES, Places, envelope_places, places, socket_places
from byte_rule import MESSAGES, Content, content_of, judge, passed_on
from byte_tapes import DAMAGES, STREAM, Row, Tapes
from harness import Answer, Live, ask, configured, until
from openai_live import CHAT, RESPONSES, body_for, function
from paced import paced
from samples import Extent
from wires import TOOLS, Wire

from proxy.providers.p1_codex.socket.connect import SocketTimers
from proxy.providers.p5_cursor.run.watch import RunTimers
from proxy.providers.upstream.transport import HttpTimers
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

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
    "p5-agent": STREAM,
}
P1 = Wire("p1", "responses", "gpt-5.5")
SOCKET = Wire("p1", "websocket", "gpt-5.5")
TOGETHER = 16
BOUND_S = 6.0
#: Of the own time of the loop: a busy machine does not shorten it.
SILENCE_S = 0.15
#: A request that was not even taken by then would count as none.
HEAD_S = 0.5
TUNING = (
    HttpTimers(head=HEAD_S, idle=SILENCE_S, after_end=0.05),
    SocketTimers(connect=HEAD_S, start=SILENCE_S, idle=SILENCE_S, close=0.05),
    # the head of a stream waits for the first message, see `Tapes`
    RunTimers(
        headers=HEAD_S, early=0.005, first=HEAD_S, silence=SILENCE_S, quiet_end=SILENCE_S, after_end=0.05, cancel=0.05
    ),
)
ROUTES = [(path, stream) for path in (MESSAGES, CHAT, RESPONSES) for stream in (True, False)]


@dataclass
class Table:
    """`before` are the tasks that were there before the first row."""

    wire: Wire
    live: Live
    tapes: Tapes
    good: dict[str, tuple[bytes, Places]] = field(default_factory=dict)
    before: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def routes(self) -> Iterable[tuple[str, bool]]:
        """Of p1, Responses are always asked for over HTTP."""
        return [route for route in ROUTES if self.wire != SOCKET or route[0] != RESPONSES]

    async def answer(self, path: str, stream: bool, prompt: str) -> Answer:
        members: dict[str, Any] = {"model": self.wire.model, "stream": stream}
        if path == MESSAGES:
            return await self.live.post(ask(prompt, tools=TOOLS, **members), path)
        if not self.wire.traits.run:  # whose tools need a session
            members["tools"] = [function(path)]
        return await self.live.post(body_for(path, prompt, **members), path)

    async def record(self) -> None:
        address = PATHS[self.wire.name]
        for name, prompt in PROMPTS.items():
            if name == "call" and self.wire.traits.run:
                continue  # a call is no end of its stream
            kept = self.tapes.keep[address] = []
            answer = await self.answer(MESSAGES, True, prompt)
            assert answer.status == 200, answer.raw
            await until(lambda kept=kept: kept)
            self.good[name] = kept[0], self._places(kept[0])
        if self.wire == SOCKET:
            self.good = {"text": socket_places(self.good["text"][0])}
            self.live.config = configured(self.live.config, p1_transport="websocket")
        self.before = asyncio.all_tasks()

    def _places(self, tape: bytes) -> Places:
        if self.wire.traits.run:
            return envelope_places(tape)
        return places(tape, "responses" if self.wire == SOCKET else self.wire.kind)

    def is_passed_on(self, path: str) -> bool:
        """Whether the upstream's own events are what the client gets."""
        return self.wire == P1 and path == RESPONSES

    async def content(self, number: int, path: str, stream: bool, name: str) -> Content | None:
        native = stream and self.is_passed_on(path)
        try:
            async with asyncio.timeout(BOUND_S):
                answer = await self.answer(path, stream, f"row-{number}- {PROMPTS[name]}")
        except ClientPayloadError:
            assert native, "the transfer broke off"
            return None  # what clients of that route take for a failure, and repeat
        return passed_on(answer) if native else content_of(path, answer, stream)

    def rows(self, path: str, stream: bool) -> Iterator[tuple[str, str, Row]]:
        """Name, prompt and row of each damage at each class. On the other routes than Messages, which share all but the
        form, it is one damage a class in turn. In a sample a damage at a class comes streamed or whole, and what HTTP
        puts around the events is damaged where the events are those of Responses."""
        number, other_form = 0, stream + (path == RESPONSES)
        for prompt, (tape, found) in self.good.items():
            for place, at in found.classes.items():
                if prompt == "call" and not place.startswith("in "):
                    continue  # the same bytes as in the text
                number += 1
                if not Extent.everything and place in HTTP_PLACES and self.wire.kind != P1.kind:
                    continue
                for turn, damage in enumerate(DAMAGES, number):
                    one_in_turn = path == MESSAGES or turn % len(DAMAGES) == 0
                    if one_in_turn and (Extent.everything or (turn + other_form) % 2 == 0):
                        yield f"{prompt}: {damage} {place}", prompt, Row(tape, at, damage)
            if self.is_passed_on(path):
                continue  # and then so is what was said there
            for turn, (place, (at, said, damage)) in enumerate(found.others.items(), path == MESSAGES):
                if Extent.everything or (turn + other_form) % 2 == 0:
                    yield f"{prompt}: {place}", prompt, Row(tape, at, damage, said)

    async def check(self) -> list[str]:
        """What breaks the rule."""
        numbers, failures = iter(range(1, 1_000_000)), list[str]()
        gate = asyncio.Semaphore(TOGETHER)

        async def run(path: str, stream: bool, name: str, prompt: str, row: Row, good: Content) -> None:
            async with gate:
                number = next(numbers)
                self.tapes.rows[number] = row
                try:
                    found = await self.content(number, path, stream, prompt)
                    judge(row, self.good[prompt][1].complete, good, found, runs=self.wire.traits.run)
                except Exception as error:
                    failures.append(f"{self.wire} {path} {'streamed' if stream else 'whole'} {name}: {error!r}"[:400])

        async with asyncio.TaskGroup() as group:
            for path, stream in self.routes:
                expected: dict[str, Content] = {}
                for prompt, (tape, _) in self.good.items():
                    number = next(numbers)
                    self.tapes.rows[number] = Row(tape, len(tape), "")
                    found = await self.content(number, path, stream, prompt)
                    assert found is not None and any(found)
                    expected[prompt] = found
                for name, prompt, row in self.rows(path, stream):
                    group.create_task(run(path, stream, name, prompt, row, expected[prompt]))
        return sorted(failures)

    async def nothing_left(self) -> None:
        """No request, no task, no connection but those that wait for the next request."""
        await self.live.client.close()
        await until(self._idle)
        assert not self.live.notes.all("internal_error")

    def _idle(self) -> bool:
        tasks = asyncio.all_tasks() - self.tapes.tasks - self.before - {asyncio.current_task()}
        return not self.tapes.busy and not +self.live.app[STATE].admission.counts and not tasks


@asynccontextmanager
async def table_of(
    sandbox: Sandbox, root: Path, wire: Wire, *, pace: bool = False, **config: Any
) -> AsyncIterator[Table]:
    """A table whose good answers are recorded. `pace`: the proxy reads each event of a tape alone."""
    async with AsyncExitStack() as stack:
        tapes = await stack.enter_async_context(Tapes(sandbox.port))
        front = await stack.enter_async_context(paced(tapes.port)) if pace else tapes
        here, there = f":{sandbox.port}", f":{front.port}"
        settings = {
            key: value.replace(here, there) if "BASE" in key else value for key, value in sandbox.settings().items()
        }
        async with Live(
            sandbox,
            root,
            settings=settings,
            tuning=TUNING,
            openai_routes=True,
            openai_mode="lenient",
            p1_header_timeout_ms=int(HEAD_S * 1000),
            **config,
        ) as live:
            yield Table(wire, live, tapes)
        await until(lambda: not tapes.tasks)  # every socket is closed
