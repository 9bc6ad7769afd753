"""A raw client of the simulated P5: a run as a correct proxy would hold it, to be spoilt by a test."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from proxy.sandbox import Sandbox
from proxy.sandbox.wires.connect.envelopes import envelope, read_envelopes
from proxy.sandbox.wires.connect.protobuf import Malformed, Message, write

RUN = "/agent.v1.AgentService/RunSSE"
APPEND = "/aiserver.v1.BidiService/BidiAppend"
MODELS = "/agent.v1.AgentService/GetUsableModels"

Fields = dict[int, Any]


def rendered(said: str, *, system: str = "", tools: Iterable[str] = ()) -> str:
    """A prompt with one message of the user, or with the sections given."""
    rows = [json.dumps({"name": name, "description": "", "input_schema": TOOL}) for name in tools]
    parts = [
        f"<system>\n{system}\n</system>" if system else "",
        said if said.startswith("<") else f"<user>\n{said}\n</user>",
        "<tools>\n" + "\n".join(rows) + "\n</tools>" if rows else "",
    ]
    return "\n\n".join(filter(None, parts))


TOOL = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def run_request(prompt: str, *, model: Fields | None = None, mode: int = 1, images: Iterable[Fields] = ()) -> Fields:
    """The message of append 0."""
    conversation = str(uuid.uuid4())
    said = {1: prompt, 2: str(uuid.uuid4()), 3: {1: list(images)}, 4: mode}
    request = {1: {}, 2: {1: {1: said}}, 4: {}, 5: conversation, 9: model or {1: "gpt-5.5"}, 16: conversation, 19: True}
    return {1: request}


def stream_close(number: int) -> Fields:
    return {5: {1: {1: number or None}}}


@dataclass
class Talk:
    """A run as the client saw it. `ends` are the payloads of END envelopes; `broken` is the error of the connection."""

    run_id: str
    status: int = 0
    headers: Any = None
    body: bytes = b""  # of an answer that is no stream
    messages: list[Message] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    ends: list[bytes] = field(default_factory=list)
    rest: bytes = b""
    closed: bool = False  # the body was read as far as wanted
    broken: Exception | None = None
    appended: list[int] = field(default_factory=list)  # statuses

    @property
    def updates(self) -> list[Message]:
        return [one for message in self.messages for one in message.all(1)]

    @property
    def text(self) -> str:
        return "".join(one.text(1, 1) for one in self.updates)

    @property
    def thought(self) -> str:
        return "".join(one.text(4, 1) for one in self.updates)

    @property
    def kinds(self) -> list[int]:
        """The numbers of the updates."""
        return [number for one in self.updates for number in one.fields]

    @property
    def execs(self) -> list[Message]:
        """Without those for the context."""
        return [one for message in self.messages for one in message.all(2) if 10 not in one]

    @property
    def end(self) -> dict[str, Any]:
        [end] = self.ends
        found: dict[str, Any] = json.loads(end)
        return found

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.end["error"]
        return found


class P5Client:
    """One signed-in account. Execs are answered by `results`: number -> what the arm of the result holds."""

    def __init__(self, sandbox: Sandbox, session: aiohttp.ClientSession) -> None:
        self.sandbox, self.session = sandbox, session
        self.p5 = sandbox.p5
        self.token = self.p5.stored_credential()["accessToken"]
        self.as_json = False
        self.last = Talk("")
        self.blobs: dict[bytes, bytes] = {}
        self.results: dict[int, Callable[[Message], list[Fields]]] = {
            10: lambda _: [{1: {1: {4: {1: "linux", 2: ["/w"], 3: "/bin/sh", 21: "/w"}, 17: True}}}],
            2: lambda args: [{1: {1: args.text(1), 2: args.text(2), 5: "a.txt"}}],
            3: lambda args: [
                {1: {1: args.text(1), 2: args.text(2).count("\n") + 1, 3: len(args.bytes(2)), 4: args.text(2)}}
            ],
            5: lambda _: [{2: {1: "no grep here"}}],
            7: lambda args: [{1: {1: args.text(1), 2: "one\ntwo", 3: 2, 4: 7}}],
            14: lambda args: [{4: {}}, {1: {1: "a.txt\n"}}, {3: {2: args.text(2) or "/w"}}],
        }

    def headers(self, run_id: str, kind: str) -> dict[str, str]:
        return {
            "authorization": f"Bearer {self.token}",
            "connect-protocol-version": "1",
            "user-agent": "connect-es/1.6.1",
            "x-cursor-client-type": "cli",
            "x-cursor-client-version": "cli-2026.10.01-e373342",
            "x-ghost-mode": "true",
            "x-cursor-streaming": "true",
            "x-request-id": str(uuid.uuid4()) if kind != "application/connect+proto" else run_id,
            "x-original-request-id": run_id,
            "content-type": kind,
        }

    def post(self, path: str, data: bytes, headers: dict[str, str | None]) -> Any:
        """A header of None is left out."""
        sent = {name: value for name, value in headers.items() if value is not None}
        skipped = [name for name, value in headers.items() if value is None]
        return self.session.post(
            self.sandbox.origin + path, data=data, headers=sent, skip_auto_headers=skipped, allow_redirects=False
        )

    async def append(
        self, run_id: str, number: int, message: Fields | bytes, **headers: str | None
    ) -> tuple[int, bytes]:
        """One append; names of headers with underscores."""
        data = message if isinstance(message, bytes) else write(message)
        kind = "application/json" if self.as_json else "application/proto"
        body = (
            json.dumps({"data": data.hex(), "requestId": {"requestId": run_id}, "appendSeqno": str(number)}).encode()
            if self.as_json
            else write({1: data.hex(), 2: {1: run_id}, 3: number or None})
        )
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.post(APPEND, body, {**self.headers(run_id, kind), **changed}) as response:
            return response.status, await response.read()

    @contextlib.asynccontextmanager
    async def open(self, run_id: str, **headers: str | None) -> AsyncIterator[Any]:
        """A RunSSE, of which nothing is read yet."""
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {**self.headers(run_id, "application/connect+proto"), "connect-accept-encoding": "gzip", **changed}
        async with self.post(RUN, envelope(write({1: run_id})), sent) as response:
            yield response

    async def run(self, prompt: str | Fields = "hello", *, until: str = "end", **headers: str | None) -> Talk:
        """A whole run. `until` "end" leaves at the END envelope, "eof" reads the body to its end."""
        self.last = talk = Talk(str(uuid.uuid4()))
        try:
            await self._run(talk, prompt, until, headers)
        except (aiohttp.ClientError, ConnectionError) as error:
            talk.broken = error
        return talk

    @contextlib.asynccontextmanager
    async def held(self, enough: Callable[[], object], prompt: str | Fields = "hello") -> AsyncIterator[Talk]:
        """A run that does not end, as far as it is when `enough` is so; leaving ends it."""
        self.last = Talk("")
        task = asyncio.create_task(self.run(prompt, until="eof"))
        try:
            async with asyncio.timeout(5):
                while not enough():
                    await asyncio.sleep(0.002)
            yield self.last
            assert not task.done(), "the run ended"
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, talk: Talk, prompt: str | Fields, until: str, headers: dict[str, str | None]) -> None:
        async with self.open(talk.run_id, **headers) as response:
            talk.status, talk.headers = response.status, response.headers
            if response.content_type != "text/event-stream":
                talk.body = await response.read()
                return
            request = prompt if isinstance(prompt, dict) else run_request(rendered(prompt))
            await self.send(talk, request, {7: {}})
            await self._read(talk, response, until)
            talk.closed = True

    async def send(self, talk: Talk, *messages: Fields) -> None:
        """Appends of a run, one after the other."""
        for message in messages:
            try:
                status, _ = await self.append(talk.run_id, len(talk.appended), message)
            except (aiohttp.ClientError, ConnectionError):
                status = 0
            talk.appended.append(status)

    async def _read(self, talk: Talk, response: Any, until: str) -> None:
        async for chunk in response.content.iter_any():
            talk.rest += chunk
            while len(talk.rest) >= 5 and len(talk.rest) >= (size := 5 + int.from_bytes(talk.rest[1:5], "big")):
                [(flags, payload)] = read_envelopes(talk.rest[:size])
                talk.rest = talk.rest[size:]
                if await self._hear(talk, flags, payload) and until == "end":
                    return

    async def _hear(self, talk: Talk, flags: int, payload: bytes) -> bool:
        """Whether this was the end."""
        talk.flags.append(flags)
        if flags & 1:
            with contextlib.suppress(gzip.BadGzipFile):
                payload = gzip.decompress(payload)
        if flags & 0x82:
            talk.ends.append(payload)
            return True
        with contextlib.suppress(Malformed):
            message = Message(payload)
            talk.messages.append(message)
            await self.answer(talk, message)
        return False

    async def answer(self, talk: Talk, message: Message) -> None:
        """Everything that the message asks for."""
        for one in message.all(2):
            await self.send(talk, *self.exec_answers(one))
        for one in message.all(4):
            await self.send(talk, self.kv_answer(one))
        for one in message.all(7):
            await self.send(talk, self.query_answer(one))

    def exec_answers(self, asked: Message) -> list[Fields]:
        number = asked.number(1) or None
        kind = next((one for one in asked.fields if one not in (1, 15, 19)), 0)
        named = {15: asked.text(15) or None}
        begin: Fields = {5: {3: {}}}
        if kind not in self.results:
            return [begin, {5: {2: {1: number, 2: "unsupported"}}}, stream_close(number or 0)]
        results = self.results[kind](asked.sub(kind) or Message(b""))
        return [begin, *({2: {1: number, kind: one, **named}} for one in results), stream_close(number or 0)]

    def kv_answer(self, asked: Message) -> Fields:
        number = asked.number(1) or None
        if 3 in asked:
            self.blobs[asked.bytes(3, 1)] = asked.bytes(3, 2)
            return {3: {1: number, 3: {}}}
        wanted = asked.bytes(2, 1)
        found = self.blobs.get(wanted, wanted if len(wanted) != 32 else None)
        return {3: {1: number, 2: {1: found}}}

    def query_answer(self, asked: Message) -> Fields:
        kind = next((one for one in asked.fields if one != 1), 0)
        arms: dict[int, Fields] = {2: {1: {}}, 9: {1: {}}, 7: {1: {1: {}}}, 3: {1: {3: {1: "no"}}}, 4: {2: {1: "no"}}}
        return {6: {1: asked.number(1), **({kind: arms[kind]} if kind in arms else {})}}
