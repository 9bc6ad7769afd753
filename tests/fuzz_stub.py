"""An upstream that answers with the bytes of a fuzz case, in front of a sandbox that answers everything else."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from proxy.sandbox import Sandbox

_RUN = "/agent.v1.AgentService/RunSSE"
_APPEND = "/aiserver.v1.BidiService/BidiAppend"
#: Path at an upstream -> its wire.
WIRES = {
    "/backend-api/codex/responses": "p1-responses",
    "/coding/v1/chat/completions": "p2-chat",
    "/v1/responses": "p3-responses",
    "/zen/go/v1/chat/completions": "p4-chat",
    "/zen/go/v1/messages": "p4-messages",
    "/zen/go/v1/responses": "p4-responses",
    _RUN: "p5-connect",
    "/backend-api/codex/images/generations": "p1-images",
    "/backend-api/codex/images/edits": "p1-images",
    "/backend-api/transcribe": "p1-transcripts",
}
#: Stands for the address of the stub in the answers of services.
ORIGIN = b"http://upstream.invalid"


@dataclass
class Step:
    """What the upstream answers to one request; `end`: how its connection goes on, "end", "cut" or "reset". `body` is
    text where it is UTF-8, else base64 in a list of one."""

    body: str | list[str] = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    end: str = "end"

    @property
    def raw(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else base64.b64decode(self.body[0])

    @classmethod
    def of(cls, raw: bytes, **members: Any) -> Step:
        try:
            return cls(raw.decode(), **members)
        except UnicodeDecodeError:
            return cls([base64.b64encode(raw).decode()], **members)


@dataclass
class FuzzCase:
    """`upstream`: one step for each request for an answer, the last for all that follow; none: a plain answer of the
    wire. `script`: in their place steps of the sandbox for p1, which is then asked over its socket. `services`: path ->
    what is answered there to whoever asks for anything else; such a case wants an application of its own, because
    what services say is kept. `config`: settings, as `harness.configured` takes them. `times`: how often
    it is asked. `wrong` is what was found when it
    was written down."""

    path: str
    method: str = "POST"
    body: str | list[str] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    upstream: list[Step] = field(default_factory=list)
    script: list[dict[str, Any]] = field(default_factory=list)
    services: dict[str, Step] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    times: int = 1
    name: str = ""
    wrong: str = ""

    @property
    def alone(self) -> bool:
        return bool(self.services) or self.times > 1

    def dump(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def load(cls, text: str) -> FuzzCase:
        values = json.loads(text)
        values["upstream"] = [Step(**step) for step in values["upstream"]]
        values["services"] = {path: Step(**step) for path, step in values.get("services", {}).items()}
        return cls(**values)


class Stub:
    """Plays steps to whoever asks for an answer, and passes everything else on."""

    def __init__(self, sandbox: Sandbox, plain: Mapping[str, Step]) -> None:
        self._sandbox = sandbox
        self._plain = plain
        self.origin = ""
        self.steps: list[Step] = []
        self.services: dict[str, Step] = {}
        self.played: list[tuple[str, Step]] = []
        #: Wire, or path of a service -> the bytes of the last answer that was passed on.
        self.passed: dict[str, bytes] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await _read_body(head, reader)
                path = head.split(b" ", 2)[1].decode().partition("?")[0]
                wire = WIRES.get(path) if head.startswith(b"POST") else None
                if b"upgrade: websocket" in head.lower():
                    await self._join(head, reader, writer)
                    break
                if not (step := self._service(path) or self._next(wire)):
                    await self._pass_on(wire or path, head, body, writer)
                    break
                if wire:
                    self.played.append((wire, step))
                if not play(step, writer):
                    break
        writer.close()

    async def _join(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on a socket."""
        inner, outer = await asyncio.open_connection("127.0.0.1", self._sandbox.port)
        outer.write(head)
        await asyncio.gather(_copy(reader, outer), _copy(inner, writer))

    def _service(self, path: str) -> Step | None:
        if path == _APPEND and (self.steps or "p5-connect" in self._plain):
            return Step(headers={"content-type": "application/proto"})  # the sandbox knows of no such run
        step = self.services.get(path)
        if step is None or ORIGIN not in step.raw:
            return step
        return Step.of(step.raw.replace(ORIGIN, self.origin.encode()), **_members(step))

    def _next(self, wire: str | None) -> Step | None:
        if wire is None:
            return None
        if self.steps:
            return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        return self._plain.get(wire)

    async def _pass_on(self, name: str, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self._sandbox.port)
        outer.write(head[:-2] + b"Connection: close\r\n\r\n" + body)
        self.passed[name] = b""
        while data := await (inner.read(1 << 16) if name in WIRES.values() else inner.read()):
            self.passed[name] += data
            writer.write(self._as_own(data))
            await writer.drain()
        outer.close()

    def _as_own(self, answer: bytes) -> bytes:
        """With the address of the stub in place of the sandbox's, for a document that names where to ask."""
        head, gap, body = answer.partition(b"\r\n\r\n")
        theirs = self._sandbox.origin.encode()
        if theirs not in body:
            return answer
        body = body.replace(theirs, self.origin.encode())
        return re.sub(rb"(?i)content-length: \d+", b"Content-Length: %d" % len(body), head) + gap + body


def _members(step: Step) -> dict[str, Any]:
    return {"status": step.status, "headers": step.headers, "end": step.end}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
    writer.close()


def play(step: Step, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection may go on."""
    lines = [f"HTTP/1.1 {step.status} Odd", *(f"{name}: {value}" for name, value in step.headers.items())]
    data, whole = step.raw, step.end == "end"
    writer.write("\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode("latin-1", "replace"))
    writer.write((b"%x\r\n%s\r\n" % (len(data), data) if data else b"") + (b"0\r\n\r\n" if whole else b""))
    if step.end == "reset":
        writer.transport.abort()
    return whole


async def _read_body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if b"chunked" not in fields.get(b"transfer-encoding", b""):
        return await reader.readexactly(int(fields.get(b"content-length", b"0")))
    raw = b""
    while size := int(line := await reader.readline(), 16):
        raw += line + await reader.readexactly(size + 2)
    return raw + line + await reader.readline()
