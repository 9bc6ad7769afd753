"""A backend of the test's own making: it upgrades, takes frames and does with each what the test says."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from aiohttp import WSMsgType, web
from harness import Live, ask, until
from outcomes import Good, is_good
from p1_events import said

from proxy.providers.p1_codex.socket.connect import SocketTimers
from proxy.sandbox import Sandbox
from proxy.server.request.state import STATE

PATH = "/backend-api/codex/responses"


@dataclass
class Peer:
    """One socket, as the backend sees it."""

    backend: Backend
    ws: web.WebSocketResponse
    request: web.Request
    number: int

    async def say(self, *events: dict[str, Any]) -> None:
        for event in events:
            await self.ws.send_str(json.dumps(event))

    def raw(self, data: bytes) -> None:
        """Bytes past all framing."""
        assert self.request.transport is not None
        self.request.transport.write(data)

    def say_at_once(self, *events: dict[str, Any]) -> None:
        """In one write."""
        self.raw(frames_of(*events))

    def cut(self) -> None:
        """No goodbye."""
        if self.request.transport is not None:
            self.request.transport.abort()

    async def later(self, step: Callable[..., None], *given: Any) -> None:
        """What needs no waiting, where something is awaited."""
        step(*given)

    async def listen(self) -> None:
        """Answers pings until the other side leaves."""
        while not self.ws.closed:
            await self.ws.receive()


@dataclass(frozen=True)
class Asked:
    """A frame, and the socket that it came over."""

    socket: int
    frame: dict[str, Any]

    @property
    def previous(self) -> str | None:
        return self.frame.get("previous_response_id")


Play = Callable[[Peer, dict[str, Any]], Awaitable[None]]
Upgrade = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Backend:
    """`upgrades` and `plays` are what becomes of the next ones; beyond them all is well."""

    sandbox: Sandbox  # where one signs in
    root: Path
    upgrades: deque[Upgrade | int] = field(default_factory=deque)
    plays: deque[Play] = field(default_factory=deque)
    refused_posts: deque[int] = field(default_factory=deque)  # statuses
    seen: list[dict[str, str]] = field(default_factory=list)  # headers of upgrades, also of refused ones
    asked: list[Asked] = field(default_factory=list)
    posts: list[dict[str, Any]] = field(default_factory=list)
    open: int = 0
    most_open: int = 0
    goodbyes: list[int | None] = field(default_factory=list)  # close codes of the proxy
    url: str = ""
    sockets: int = 0
    answers: int = 0

    def proxy(
        self, mode: str = "websocket", *, timers: dict[str, float] | None = None, tuning: Any = (), **config: Any
    ) -> Live:
        """A proxy in front of it. In the mode `auto` only conversations that may be continued get a socket."""
        tuned = (SocketTimers(**(timers or {})), *tuning)
        settings = {"p1_previous_response_id": mode == "auto", **config}
        return Live(self.sandbox, self.root, p1_base_url=self.url, p1_transport=mode, tuning=tuned, **settings)

    @property
    def history(self) -> list[tuple[int, str | None]]:
        """Of each frame the socket, and the response that it goes on from."""
        return [(asked.socket, asked.previous) for asked in self.asked]

    @property
    def traffic(self) -> tuple[int, int, int]:
        """How many upgrades, POSTs and frames came."""
        return len(self.seen), len(self.posts), len(self.asked)

    async def upgrade(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(dict(request.headers))
        step = self.upgrades.popleft() if self.upgrades else None
        if isinstance(step, int):
            return web.Response(status=step)
        if step is not None:
            return await step(request)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        self.sockets += 1
        ws = web.WebSocketResponse(compress=False, max_msg_size=0)
        try:
            await ws.prepare(request)
            await self._serve(Peer(self, ws, request, self.sockets))
        finally:
            self.open -= 1
            self.goodbyes.append(ws.close_code)
        return ws

    async def _serve(self, peer: Peer) -> None:
        async for message in peer.ws:
            assert message.type is WSMsgType.TEXT
            frame = json.loads(message.data)
            self.asked.append(Asked(peer.number, frame))
            play = self.plays.popleft() if self.plays else answer
            try:
                await play(peer, frame)
            except ConnectionError:
                return

    async def post(self, request: web.Request) -> web.StreamResponse:
        self.posts.append(await request.json())
        if self.refused_posts:
            return web.Response(status=self.refused_posts.popleft())
        self.answers += 1
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in said("over http", f"http_{self.answers}"))
        return web.Response(body=body.encode(), content_type="text/event-stream")


@asynccontextmanager
async def running_backend(sandbox: Sandbox, root: Path) -> AsyncIterator[Backend]:
    backend = Backend(sandbox, root)
    app = web.Application()
    app.router.add_get(PATH, backend.upgrade)
    app.router.add_post(PATH, backend.post)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    backend.url = f"http://127.0.0.1:{runner.addresses[0][1]}{PATH}"
    try:
        yield backend
    finally:
        await runner.cleanup()


def frames_of(*events: dict[str, Any]) -> bytes:
    """As the bytes of a socket."""
    texts = [json.dumps(event).encode() for event in events]
    return b"".join(b"\x81\x7e" + len(text).to_bytes(2, "big") + text for text in texts)


async def answer(peer: Peer, frame: dict[str, Any]) -> None:
    """What happens when the test has nothing else in mind."""
    peer.backend.answers += 1
    await peer.say(*said("fine", f"resp_{peer.backend.answers}"))


def saying(*events: dict[str, Any], then: str = "cut") -> Play:
    """Says this, then: cut, close, listen, or nothing (the socket goes on)."""

    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        await peer.say(*events)
        if then == "cut":
            await asyncio.sleep(0.02)  # a reset may overtake what was sent before it
            peer.cut()
        elif then == "close":
            await peer.ws.close()
        elif then == "listen":
            await peer.listen()

    return play


def late(seconds: float, then: Play = answer) -> Play:
    async def play(peer: Peer, frame: dict[str, Any]) -> None:
        await asyncio.sleep(seconds)
        await then(peer, frame)

    return play


async def stalled(peer: Peer, frame: dict[str, Any]) -> None:
    """Neither words nor pongs."""
    try:
        await asyncio.sleep(30)
    finally:
        peer.cut()


class Counted(Protocol):
    """What knows how many sockets are open: a backend of a test's own, or the sandbox."""

    open: int


class leaving_nothing:  # noqa: N801 - reads as a phrase
    """At the end no socket is open and no task of the proxy runs that did not run before. With `live` those that wait
    for their next turn are closed then."""

    def __init__(self, backend: Counted, live: Live | None = None) -> None:
        self._backend = backend
        self._live = live

    async def __aenter__(self) -> None:
        self._before = tasks()

    async def __aexit__(self, *_: object) -> None:
        if self._live is not None:
            sockets = provider_sockets(self._live)
            await sockets.close()
            sockets._connector._session = None  # for another row of the same test
        await until(lambda: self._backend.open == 0, 1.0)
        await until(lambda: tasks() <= self._before, 1.0)


def tasks() -> set[asyncio.Task[Any]]:
    """All but this one and those in which servers wait for the next request."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return {task for task in others if "RequestHandler.start" not in repr(task.get_coro())}


def new_session() -> dict[str, str]:
    """Headers of a conversation that nobody has seen yet."""
    return {"x-claude-code-session-id": f"s-{next(_SESSIONS)}"}


_SESSIONS = itertools.count(1)


async def goes_well(live: Live, outcome: Good = Good()) -> None:  # noqa: B008 - it is frozen
    """Asks something, in a conversation of its own."""
    is_good(await live.stream(ask(), headers=new_session()), outcome, stream=True)


def provider_sockets(live: Live) -> Any:
    return live.app[STATE].providers["p1"]._sockets  # type: ignore[attr-defined]
