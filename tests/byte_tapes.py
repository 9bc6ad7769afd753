"""An upstream made of bytes: what a simulator once answered, said again up to a place, and damaged there.

`Tapes` stands between the proxy and the sandbox. It passes requests on; the answer to one can be kept as a `Tape`, and
played from then on for requests that name a row of a table (`row-7` in the prompt). It knows HTTP/1.1 only as far as
finding the end of a request. A run (p5) is told apart by the message that opens it, so the answer waits for that.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import socket
import struct
from dataclasses import dataclass, field
from typing import Any

HOST = "127.0.0.1"
_ROW = re.compile(rb"row-(\d+)-")
_LENGTH = re.compile(rb"(?i)content-length: (\d+)")
_KEY = re.compile(rb"(?i)sec-websocket-key: (\S+)")
_RUN = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX = re.compile(rb"(?:[0-9a-f]{2}){20,}")
STREAM, APPEND = "/agent.v1.AgentService/RunSSE", "/aiserver.v1.BidiService/BidiAppend"
#: Stands where the answer to an upgrade repeats the key, and is as long.
ACCEPT = b"@" * 28
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
    + ACCEPT
    + b"\r\n\r\n"
)
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

#: What is no HTTP, no UTF-8, no JSON and no length.
GARBAGE = b"\xff\x00}zz\xfe"
#: How an answer may be damaged: ended, reset, overwritten, made longer, or left standing.
DAMAGES = ("cut", "reset", "garble", "insert", "stall")
#: Damage behind which the rest follows.
_REST = ("garble", "insert")
#: What was sent in front of the damage reaches a reader by itself.
_AHEAD_S = 0.002


@dataclass
class Row:
    """One answer that is damaged, and how often it was asked for: the first `times` attempts get the damage. `said`
    stands in place of the garbage, or comes last in front of a cut."""

    tape: bytes
    at: int
    damage: str
    said: bytes = b""
    times: int = 1
    attempts: int = 0

    @property
    def first(self) -> bytes:
        """What is said of the tape before the damage is done."""
        garbage = self.said or GARBAGE
        if self.damage == "cut":
            return self.said
        if self.damage == "insert":
            return garbage + self.tape[self.at :]
        return garbage + self.tape[self.at + len(garbage) :] if self.damage == "garble" else b""


@dataclass
class Tapes:
    """`busy` counts answers under way; `keep` is what the answer to the next request for a path is appended to.

    upgrade   the answer to upgrades, with ACCEPT in place of the key
    tasks     those that serve connections, one each
    """

    upstream: int
    rows: dict[int, Row] = field(default_factory=dict)
    keep: dict[str, list[bytes]] = field(default_factory=dict)
    upgrade: Row | None = None
    busy: int = 0
    port: int = 0
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _runs: dict[bytes, asyncio.Future[Row]] = field(default_factory=dict)

    async def __aenter__(self) -> Tapes:
        self._server = await asyncio.start_server(self._serve, HOST, 0, limit=1 << 24)
        self.port = self._server.sockets[0].getsockname()[1]
        self._writers: set[asyncio.StreamWriter] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            while (request := await _read_request(reader)) is not None:
                self.busy += 1
                try:
                    going = await self._answer(request, reader, writer)
                finally:
                    self.busy -= 1
                if not going:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            self.tasks.discard(task)
            writer.close()

    async def _answer(self, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        path = request.split(b" ", 2)[1].decode()
        if key := _KEY.search(request):
            await _Socket(self, reader, writer).serve(key[1])
            return False
        if self.rows and path in (STREAM, APPEND):
            return await self._play_run(path, request, reader, writer)
        found = _ROW.search(request)
        row = self.rows[int(found[1])] if found else None
        if row is not None:
            return await play(row, reader, writer)
        answer = await self._pass_on(request, writer)
        if path in self.keep:
            self.keep[path].append(answer)
        return True

    async def _play_run(
        self, path: str, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """The stream of a run begins, head and all, when the first message has named its row."""
        found = _RUN.findall(request.partition(b"\r\n\r\n")[2])
        row = self._runs.setdefault(found[-1], asyncio.get_running_loop().create_future())
        if path == STREAM:
            return await play(await row, reader, writer)
        named = next(filter(None, (_ROW.search(bytes.fromhex(text.decode())) for text in _HEX.findall(request))), None)
        if named and not row.done():
            row.set_result(self.rows[int(named[1])])
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-length: 0\r\n\r\n")
        return True

    async def _pass_on(self, request: bytes, client: asyncio.StreamWriter) -> bytes:
        """The answer of the sandbox, passed on as it comes, as if the connection could be used again."""
        reader, writer = await asyncio.open_connection(HOST, self.upstream)
        head, _, body = request.partition(b"\r\n\r\n")
        head = re.sub(rb"(?i)\r\nconnection: [^\r]*", b"", head)
        writer.write(head + b"\r\nConnection: close\r\n\r\n" + body)
        answer = re.sub(rb"(?i)\r\nconnection: close", b"", await reader.readuntil(b"\r\n\r\n"), count=1)
        client.write(answer)
        while piece := await reader.read(65536):
            client.write(piece)
            answer += piece
        writer.close()
        return answer


async def _read_request(reader: asyncio.StreamReader) -> bytes | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    length = _LENGTH.search(head)
    if length:
        return head + await reader.readexactly(int(length[1]))
    if b"chunked" in head.lower():
        return head + await reader.readuntil(b"0\r\n\r\n")
    return head


async def play(row: Row, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Says the tape, damaged the first times. Whether the connection goes on."""
    row.attempts += 1
    tape, at, damage = row.tape, row.at, row.damage
    damaged = row.attempts <= row.times
    if not (damaged and damage):
        writer.write(tape)
    else:
        writer.write(tape[:at])
        await writer.drain()
        await asyncio.sleep(_AHEAD_S)
    if damaged:
        writer.write(row.first)
    if damaged and damage and damage not in _REST:
        if damage == "stall":
            while await reader.read(65536):
                pass
        elif damage == "reset":
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return False
    await writer.drain()
    return True


@dataclass
class _Socket:
    """A WebSocket of the upstream, after its upgrade was asked for."""

    tapes: Tapes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def serve(self, key: bytes) -> None:
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest())
        row = self.tapes.upgrade or Row(SWITCH, 0, "")
        row.tape = SWITCH.replace(ACCEPT, accept)
        if not await play(row, self.reader, self.writer):
            return
        while True:
            kind, payload = await self._frame()
            if kind == 8:
                self.writer.write(b"\x88\x00")
                return
            if kind == 9:
                self.writer.write(bytes([0x8A, len(payload)]) + payload)
            found = _ROW.search(payload) if kind == 1 else None
            if found and not await play(self.tapes.rows[int(found[1])], self.reader, self.writer):
                return

    async def _frame(self) -> tuple[int, bytes]:
        """Opcode and data of the next message of the client, fragments joined."""
        whole, kind = b"", 0
        while True:
            first, second = await self.reader.readexactly(2)
            size = second & 127
            if size > 125:
                size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
            mask = await self.reader.readexactly(4)
            data = await self.reader.readexactly(size)
            stream = (mask * (size // 4 + 1))[:size]
            whole += (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")
            kind = kind or first & 15
            if first & 128:
                return kind, whole
