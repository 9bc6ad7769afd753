"""One open socket of P1: frames in, one answer at a time out, and the memory that lets a turn continue from the last.

A frame has the body that HTTP would get, and more. Nothing is stored outside of the socket, so no other socket and no
HTTP request can continue from its answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from proxy.sandbox.p1.headers import LITE_MARKER, is_lite
from proxy.sandbox.p1.responses import checked_answer
from proxy.sandbox.p1.socket.answer import SOCKET, SOCKET_WIRE, SocketAnswer, error_event
from proxy.sandbox.p1.socket.link import Keepalive, not_found, slow_down, too_old
from proxy.sandbox.p1.state import P1
from proxy.sandbox.play.actions import Action, Pace, Reply
from proxy.sandbox.play.player import Player, cut, drain
from proxy.sandbox.upstream import MAX_BODY_BYTES, CheckedRequest, Received, Socket, read_json
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.field_checks import check, members
from proxy.sandbox.wires.refusal import Refused, detail, invalid

Item = dict[str, Any]


class Memory:
    """The conversation so far. Never longer than a context window, since every request that adds to it is checked
    against that."""

    def __init__(self) -> None:
        self.last: str | None = None  # the id of the answer
        self._items: list[Item] = []

    def recall(self, previous: str | None) -> list[Item]:
        """The items to continue from; none for None. Raises Refused unless `previous` is the last answer of this
        socket.

        Recalled items are forgotten: only a turn that completes can be continued."""
        if previous is None:
            return []
        if previous != self.last:
            raise not_found(previous)
        items, self.last, self._items = self._items, None, []
        return items

    def remember(self, response_id: str, items: Iterable[Item]) -> None:
        self.last = response_id
        self._items = [item for item in items if _is_kept(item)]


def _is_kept(item: Item) -> bool:
    """Whether an item is kept. A trigger is used up; reasoning that went out without its encrypted content cannot be
    sent in again."""
    kind = item.get("type")
    return kind != "compaction_trigger" and not (kind == "reasoning" and "encrypted_content" not in item)


_MEMBERS = members("previous_response_id: text, generate: boolean")

#: Members of a frame that a body does not have.
_FRAME_ONLY = ("type", *(row.path for row in _MEMBERS))

#: Replaces the missing input of a warm-up, so that a body's checks have something to check.
_NO_INPUT: Item = {"type": "message", "role": "user", "content": ""}


class Turn(NamedTuple):
    """A request. `body` has the whole input, `conversation` is that input; a `warm_up` wants no output."""

    body: dict[str, Any]
    conversation: list[Item]
    lite: bool
    warm_up: bool
    previous: str | None


def read_turn(frame: Any, headers: Mapping[str, str], memory: Memory) -> Turn:
    """Reads a frame; the body is not checked yet. `headers` are those of the upgrade. Raises Refused."""
    if not isinstance(frame, dict):
        raise detail("Invalid JSON frame")
    if frame.get("type") != "response.create":
        raise invalid(f"Unknown event type: {frame.get('type')}", code="invalid_value", param="type")
    check(frame, _MEMBERS)
    # a client may keep the member of HTTP
    body = {"stream": True, **{name: value for name, value in frame.items() if name not in _FRAME_ONLY}}
    previous = frame.get("previous_response_id")
    history = memory.recall(previous)
    delta = body.get("input")
    conversation = [*history, *delta] if isinstance(delta, list) else history
    warm_up = frame.get("generate") is False
    if isinstance(delta, list):
        body["input"] = conversation or ([_NO_INPUT] if warm_up else [])
    return Turn(body, conversation, _is_lite(body, headers), warm_up, previous)


def _is_lite(body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
    """Whether a frame is on the lite lane: by its own marker, else by the header of the socket."""
    metadata = body.get("client_metadata")
    marked = isinstance(metadata, dict) and metadata.get(LITE_MARKER) is not None
    return marked or is_lite(headers)


#: Seconds that a client may take to answer a close frame.
CLOSE_S = 1.0

#: Bytes that may wait to be sent before more are made.
MAX_WAITING_BYTES = 256 * 1024

#: After one of these the next request may come.
TERMINALS = ("response.completed", "response.incomplete", "response.failed", "error")


class SocketSession:
    """Serves a socket from the 101 to the end. The upstream counts its requests like those over HTTP."""

    def __init__(self, p1: P1, request: web.Request, seen: Socket) -> None:
        self.p1 = p1
        self.request = request
        self.seen = seen
        self.memory = Memory()
        self._socket = web.WebSocketResponse(
            timeout=CLOSE_S, autoping=False, compress=False, max_msg_size=MAX_BODY_BYTES, decode_text=False
        )
        self._link = p1.options.link
        self._keepalive: Keepalive | None = None
        self._opened = p1.clock()
        self._turn: Turn | None = None  # being answered
        self._items: list[Item] = []  # items sent in this turn
        self._playing: asyncio.Task[None] | None = None
        self._closing = False
        self._ignores_pings = False

    async def run(self) -> web.StreamResponse:
        socket = self._socket
        socket.headers.update({**self.p1.trace_headers(), **self.p1.account_headers()})
        with self.p1.sockets.inside():
            await socket.prepare(self.request)
            self.seen.status = socket.status
            slow_down(self.request.transport, self._link)
            try:
                async with asyncio.TaskGroup() as tasks:
                    pings = self._watched(tasks)
                    async for message in socket:
                        await self._take(message, tasks)
                    if self._playing is not None and not self._closing:
                        self._playing.cancel()
                    if pings is not None:
                        pings.cancel()
            finally:
                if self.seen.close_code is None:
                    self.seen.close_code = socket.close_code or WSCloseCode.ABNORMAL_CLOSURE
        return socket

    async def _take(self, message: WSMessage, answers: asyncio.TaskGroup) -> None:
        if message.type is WSMsgType.TEXT and len(self.seen.frames) + 1 == self._link.frames:
            self._note(message.data)
            await cut(self.request, reset=False)
        elif message.type is WSMsgType.TEXT:
            await self._answer(self._note(message.data), answers)
        elif message.type is WSMsgType.BINARY:
            self._note(message.data)
            await self._close(WSCloseCode.UNSUPPORTED_DATA, "text frames only")
        elif message.type is WSMsgType.PONG:
            self.seen.pongs += 1
            if self._keepalive is not None:
                self._keepalive.heard()
        elif message.type is WSMsgType.PING:
            self.seen.pings += 1
            if not self._ignores_pings:
                with suppress(ConnectionError):
                    await self._socket.pong(message.data)

    def _note(self, data: bytes) -> Received:
        """Records a frame."""
        seen = Received(
            self.request.path, self.request.headers, read_json(data), size=len(data), socket=self.seen.number
        )
        self.seen.frames.append(seen)
        return seen

    async def _answer(self, seen: Received, answers: asyncio.TaskGroup) -> None:
        """Begins the answer to a frame, or refuses it."""
        self.p1.note(seen)
        try:
            self._check_free()
            turn = read_turn(seen.body, self.request.headers, self.memory)
            answer, actions, pace = self._prepare(turn, seen)
        except Refused as refused:
            seen.status = refused.status
            # past `_sent`: this does not end an answer that may be under way
            await _FramePlayer(self.request).send([error_event(refused.status, refused.body)])
            if self._is_old():
                await self._close(WSCloseCode.OK)
            return
        if self._playing is not None:
            self._playing.cancel()  # what a fault sends after its end
        self._turn, self._items, self._ignores_pings = turn, [], answer.ignores_pings
        self._playing = answers.create_task(self._play(answer, actions, pace))

    def _check_free(self) -> None:
        """Allows one request at a time, and none on a socket that is too old."""
        if self._turn is not None:
            raise invalid(
                "A response is already being made on this connection.",
                code="conversation_already_has_active_response",
            )
        if self._is_old():
            raise too_old()

    def _is_old(self) -> bool:
        return self._turn is None and self.p1.clock() - self._opened > self.p1.options.socket_age_s

    def _prepare(self, turn: Turn, seen: Received) -> tuple[SocketAnswer, Iterable[Action], Pace]:
        """The answer, its actions and their pace."""
        plain, instead = checked_answer(self.p1, self.request.headers, turn.body, lite=turn.lite)
        answer = SocketAnswer.of(plain, self._account_events(), announced=self.p1.options.announced)
        answer.envelope["previous_response_id"] = turn.previous
        seen.status = 200
        if turn.warm_up:
            answer.clear(message=False)
            return answer, answer.finished(answer.stream()), Pace()
        outcome, pace = self.p1.decide(CheckedRequest(SOCKET_WIRE, answer, instead=instead), seen.body)
        if isinstance(outcome, Reply):
            seen.status = outcome.status
            outcome = [error_event(outcome.status, outcome.body, outcome.headers)]
        return answer, outcome, pace

    def _account_events(self) -> list[Event]:
        metadata = {"type": "codex.response.metadata", "metadata": {"request_id": self.p1.ids.new("req")}}
        return [self.p1.options.quota.event(self.p1.clock()), metadata]

    async def _play(self, answer: SocketAnswer, actions: Iterable[Action], pace: Pace) -> None:
        with self.p1.at_work():
            if not await _FramePlayer(self.request, self._sent).perform(actions, pace):
                return
            if answer.close is not None:
                await self._close(*answer.close)
            elif self._turn is not None:
                await self._close(WSCloseCode.OK)  # the answer has no end to wait for

    def _sent(self, event: Event) -> None:
        """Sees every event before it goes out, since the next request may directly follow the last of them."""
        if self._turn is None:
            return
        if event["type"] == "response.output_item.done":
            self._items.append(event.get("item", {}))
        elif event["type"] in TERMINALS:
            self._remember(event, self._turn)
            self._turn = None

    def _remember(self, end: Event, turn: Turn) -> None:
        """Remembers a completed answer, the only kind that can be continued."""
        response = end.get("response") or {}
        if response.get("status") == "completed" and response.get("error") is None and "id" in response:
            self.memory.remember(response["id"], [*turn.conversation, *(response.get("output") or self._items)])

    def _watched(self, tasks: asyncio.TaskGroup) -> asyncio.Task[None] | None:
        """Begins to ping, if the link wants it."""
        if self._link.ping_s is None:
            return None
        ping = partial(self._socket.ping, b"keepalive")
        self._keepalive = Keepalive(self._link.ping_s, self._link.pong_s, ping)
        return tasks.create_task(self._keep_alive(self._keepalive))

    async def _keep_alive(self, keepalive: Keepalive) -> None:
        """Ends a socket whose client leaves pings unanswered."""
        with suppress(ConnectionError):
            await keepalive.missed()
            if self._playing is not None:
                self._playing.cancel()
            await self._close(WSCloseCode.INTERNAL_ERROR, "keepalive ping timeout")

    async def _close(self, code: int, reason: str = "") -> None:
        self._closing, self.seen.close_code = True, code
        await self._socket.close(code=code, message=reason.encode())


class _FramePlayer(Player):
    """Writes frames past the socket object, which sends only valid ones. `on_event` sees each event."""

    def __init__(self, request: web.Request, on_event: Callable[[Event], None] | None = None) -> None:
        super().__init__(request, SOCKET)
        self._on_event = on_event

    async def send(self, batch: list[Event]) -> None:
        if self._on_event is not None:
            for event in batch:
                self._on_event(event)
        await super().send(batch)

    async def write(self, data: bytes) -> None:
        transport = self.request.transport
        if transport is not None and not transport.is_closing():
            transport.write(data)
            await drain(transport, MAX_WAITING_BYTES)
