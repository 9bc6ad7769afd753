"""A small outgoing proxy on loopback (tunnels, requests in absolute form, Basic credentials), TLS in front of a plain
server, and names that lead nowhere else. A test that gets something wrong reaches nobody outside of this machine.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

import aiohttp
import pytest
import trustme
from aiohttp.abc import AbstractResolver, ResolveResult

from proxy.sandbox import Sandbox

Address = tuple[str, int]
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Listener(ABC):
    """A server of raw connections; leaving the `with` block cuts them. `connections` counts all that ever came."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.connections = 0
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def exchange(self, client: Pair) -> None:
        """Serves one connection."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.place = ("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.ensure_future(self._serve((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: Pair) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                await self.exchange(client)
        finally:
            client[1].transport.abort()


class TlsFront(Listener):
    """TLS in front of a plain server."""

    def __init__(self, behind: Address, tls: ssl.SSLContext) -> None:
        super().__init__(tls)
        self._behind = behind

    async def exchange(self, client: Pair) -> None:
        async with opened(self._behind) as upstream:
            await join(client, upstream)


@dataclass(frozen=True)
class Asked:
    """One request to the proxy: `CONNECT host:port`, or another method with an absolute URL. Header names are small."""

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def destination(self) -> str:
        """`host:port`"""
        if self.method == "CONNECT":
            return self.target
        parts = urlsplit(self.target)
        return f"{parts.hostname}:{parts.port or 80}"


class ConnectProxy(Listener):
    """The proxy.

    routes   "host:port" -> where that is on loopback; other destinations are refused with 502
    user     "user:password" it asks for; None lets everybody in
    tls      speaks TLS with its clients
    opened   status line of a tunnel that it opens
    answers  raw bytes instead of what it would do, one for each request; b"" closes, None stays silent
    asked    what it was asked for, refused or not
    """

    def __init__(
        self, routes: Mapping[str, Address] | None = None, *, user: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(tls)
        self.routes = dict(routes or {})
        self.opened = "200 Connection established"
        self.answers: list[bytes | None] = []
        self.asked: list[Asked] = []
        self._basic = None if user is None else "Basic " + base64.b64encode(user.encode()).decode()

    @property
    def targets(self) -> list[str]:
        return [f"{asked.method} {asked.target}" for asked in self.asked]

    async def exchange(self, client: Pair) -> None:
        reader, writer = client
        head = await reader.readuntil(b"\r\n\r\n")
        asked = read_head(head)
        self.asked.append(asked)
        if self.answers:
            answer = self.answers.pop(0)
            if answer is None:
                await asyncio.Event().wait()
            writer.write(answer or b"")
        elif self._basic is not None and asked.headers.get("proxy-authorization") != self._basic:
            writer.write(whole("407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="test"'))
        elif asked.destination not in self.routes:
            writer.write(whole("502 Bad Gateway"))
        else:
            await self._lead(asked, head, client)
        await writer.drain()

    async def _lead(self, asked: Asked, head: bytes, client: Pair) -> None:
        async with opened(self.routes[asked.destination]) as upstream:
            if asked.method == "CONNECT":
                client[1].write(f"HTTP/1.1 {self.opened}\r\n\r\n".encode())
            else:
                upstream[1].write(origin_form(head))
            await join(client, upstream)


def read_head(head: bytes) -> Asked:
    line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = line.split(" ")
    pairs = (field.partition(":") for field in fields)
    return Asked(method, target, {name.strip().lower(): value.strip() for name, _, value in pairs})


def origin_form(head: bytes) -> bytes:
    """The head as the destination gets it: a path in its first line, and no credential of the proxy."""
    method, target, rest = head.split(b" ", 2)
    path = b"/" + target.split(b"/", 3)[3]
    return b" ".join((method, path, re.sub(rb"(?i)proxy-authorization:[^\r]*\r\n", b"", rest)))


def whole(status: str, *headers: str) -> bytes:
    """An answer without a body."""
    return "\r\n".join((f"HTTP/1.1 {status}", "Content-Length: 0", *headers, "", "")).encode()


@contextlib.asynccontextmanager
async def opened(place: Address) -> AsyncIterator[Pair]:
    reader, writer = await asyncio.open_connection(*place)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def join(one: Pair, other: Pair) -> None:
    """Carries bytes both ways until one side ends."""
    ways = [asyncio.ensure_future(pipe(one[0], other[1])), asyncio.ensure_future(pipe(other[0], one[1]))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


class Authority:
    """A certificate authority of this test run. aiohttp believes it after `trusted`."""

    def __init__(self) -> None:
        self.authority = trustme.CA()

    def server(self, *names: str) -> ssl.SSLContext:
        """For a server with these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(*names).configure_cert(context)
        return context

    def trusted(self, patch: pytest.MonkeyPatch) -> None:
        """The system's authorities are left out: to read them takes longer than a test."""
        context = ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())
        patch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", context)


VENDORS = "vendors.test"


@dataclass(frozen=True)
class Company:
    """A network that one leaves through a proxy with a password: behind it stands a sandbox, called `vendors.test` and
    speaking TLS.

    settings   the variables that lead to the vendors
    variables  those that lead through the proxy
    """

    proxy: ConnectProxy
    front: TlsFront
    settings: dict[str, str]
    variables: dict[str, str]

    @property
    def only_tunnels(self) -> bool:
        """Whether something arrived, and nothing in another way than through the proxy."""
        asked = set(self.proxy.targets)
        return asked == {f"CONNECT {VENDORS}:443"} and self.front.connections <= len(self.proxy.targets)


@contextlib.asynccontextmanager
async def company(sandbox: Sandbox, authority: Authority) -> AsyncIterator[Company]:
    settings = {name: value.replace(sandbox.origin, f"https://{VENDORS}") for name, value in sandbox.settings().items()}
    async with (
        TlsFront(place_of(sandbox), authority.server(VENDORS)) as front,
        ConnectProxy({f"{VENDORS}:443": front.place}, user="me:p@ss") as proxy,
    ):
        yield Company(proxy, front, settings, {"https_proxy": f"http://me:p%40ss@127.0.0.1:{proxy.port}"})


def place_of(sandbox: Sandbox) -> Address:
    parts = urlsplit(sandbox.origin)
    return parts.hostname or "", parts.port or 0


class Names(AbstractResolver):
    """Every name but the `unknown` ones is this machine; `looked_up` tells which were asked for."""

    looked_up: list[str]
    unknown: tuple[str, ...] = ()

    @classmethod
    def installed(cls, patch: pytest.MonkeyPatch) -> type[Names]:
        patch.setattr(aiohttp.connector, "DefaultResolver", cls)
        cls.looked_up, cls.unknown = [], ()
        return cls

    def __init__(self, **_: object) -> None:
        pass

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.looked_up.append(host)
        if host in self.unknown:
            raise OSError(socket.EAI_NONAME, "Name or service not known")
        found = ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)
        return [found]

    async def close(self) -> None:
        return None
