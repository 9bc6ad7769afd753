"""One run: a conversation with the service that outlives the request it answers, while a tool of the client is at work.

Three tasks belong to it and end with it: one reads what the service says and answers what it asks, one sends our
messages (`Appends`), one keeps it alive and watches the time. Whoever holds the run `take`s what it said, as events:

    {"type": "text", "text": …}  {"type": "thinking", "text": …}  {"type": "tokens", "count": …}
    {"type": "tool", "call": OpenCall}
    {"type": "end", "output_tokens": int | None, "parked": str}

`parked` is an answer that the service left in its store in place of saying it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import aiohttp

from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.observe.lifecycle import Log
from proxy.providers.p5_cursor.bridge.calls import ExecRequest, tool_of
from proxy.providers.p5_cursor.bridge.results import result_messages
from proxy.providers.p5_cursor.catalog import LABEL
from proxy.providers.p5_cursor.failures import HOST_CURE, PROFILE, document_error, end_error
from proxy.providers.p5_cursor.run.appends import Appends
from proxy.providers.p5_cursor.run.blobs import Blobs
from proxy.providers.p5_cursor.run.channels import Channels
from proxy.providers.p5_cursor.run.replies import (
    CANCEL,
    HEARTBEAT,
    context_answer,
    denial,
    exec_heartbeat,
    plan_of,
    query_answer,
    throw,
)
from proxy.providers.p5_cursor.run.timers import RunTimers
from proxy.providers.p5_cursor.run.watch import RunWatch, Verdict
from proxy.providers.p5_cursor.wire.envelopes import Envelope, EnvelopeDecoder, EnvelopeError
from proxy.providers.p5_cursor.wire.protobuf import WireError, members
from proxy.providers.upstream.client import read_error

Event = dict[str, Any]
Message = dict[str, Any]

#: Characters of events that wait for a client; nothing is read on until they are fewer.
MAX_WAITING_CHARS = 4 * 1024 * 1024
#: Calls of tools that wait for a client; the service is refused any more.
MAX_OPEN_CALLS = 64
#: What a stream of envelopes can begin with; anything else is a document.
_FLAGS = frozenset({0, 1, 2, 3, 0x80, 0x81})

#: What the end of a wait is called, and its kind.
_TIMEOUTS: dict[Verdict, tuple[str, str]] = {
    Verdict.NO_START: (
        "the service did not begin to answer; a proxy on the way that holds back streams looks the same",
        "upstream_timeout",
    ),
    Verdict.SILENT: ("the service fell silent", "upstream_timeout"),
    Verdict.NO_PROGRESS: ("the service sent nothing but signs of life", "upstream_timeout"),
    Verdict.TOO_LONG: ("the run took too long", "upstream_timeout"),
    Verdict.STALLED: ("the service did not go on after the result of a tool", "upstream_timeout"),
    Verdict.PAUSE_OVER: ("the result of a tool did not come in time", "upstream_timeout"),
}


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call of a client's tool whose result the service waits for.

    tool     the client's name of the tool
    since    when it came, in seconds of the loop's clock
    aborted  the service does not want the result any more
    """

    request: ExecRequest
    tool: str
    since: float
    beat_at: float
    aborted: bool = False


@dataclass(slots=True)
class RunOutput:
    """How much a run has said, over all the answers it gave.

    tokens    sum of the counts that the service gave on the way
    chars     characters of text and thoughts
    reported  output tokens that clients were told of already
    """

    tokens: int = 0
    chars: int = 0
    reported: int = 0


class Run:
    """See above. Make it with a running loop, then `start`; `close` it in the end.

    context     what the service is told of this machine
    workspace   the directory among it
    renamed     is told the id of a conversation that the service prefers
    """

    def __init__(
        self,
        channels: Channels,
        timers: RunTimers,
        log: Log,
        request_id: str,
        *,
        context: Mapping[str, Any],
        workspace: str,
        renamed: Callable[[str], None],
    ) -> None:
        self.id = channels.id
        self.workspace = workspace
        self.tools: Mapping[str, Mapping[str, Any]] = {}  # those of the client that may be asked for
        self.output = RunOutput()
        self.offered: OpenCall | None = None  # the call that the client has
        self.stalled = False
        self._channels = channels
        self._timers = timers
        self._log = log
        self._request_id = request_id
        self._context = context
        self._renamed = renamed
        self._loop = asyncio.get_running_loop()
        self._appends = Appends(channels.append, self._fail)
        self._watch = RunWatch(timers, self._loop.time())
        self._blobs = Blobs()
        self._calls: dict[tuple[int, str], OpenCall] = {}
        self._events: list[Event] = []
        self._chars = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._greeted = self._said = self._begun = False
        self._turn_over: Mapping[str, Any] | None = None
        self._failure: Exception | None = None
        self._over = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def missed_blob(self) -> bool:
        """Whether the service asked for something of its store that is not here."""
        return self._blobs.missed

    @property
    def lost(self) -> bool:
        """Whether nobody listens any more to what a client's tool brought, and nothing was said without it."""
        return self._failure is not None or (self._over and not any(event["type"] != "end" for event in self._events))

    @property
    def accepted(self) -> bool:
        """Whether the service may have begun to work."""
        return self._appends.sent > 0

    def start(self, opening: bytes) -> None:
        """Begins with the opening message."""
        self._tasks = [asyncio.create_task(self._read(opening)), asyncio.create_task(self._keep_alive())]

    # -- what the holder does

    async def take(self) -> list[Event]:
        """What was said since the last call, up to and with the first call of a tool. Raises ProxyError."""
        while not (events := self._cut()):
            if self._failure is not None:
                raise self._failure
            self._news.clear()
            await self._news.wait()
        if self._chars <= MAX_WAITING_CHARS:
            self._room.set()
        return events

    def _cut(self) -> list[Event]:
        """The events up to and with the first call, without calls that the service took back."""
        first = next((place for place, event in enumerate(self._events) if _is_open(event)), len(self._events))
        events, self._events = self._events[: first + 1], self._events[first + 1 :]
        self._chars -= sum(map(_chars, events))
        return [event for event in events if event["type"] != "tool" or _is_open(event)]

    def pause(self, call: OpenCall) -> None:
        """The client has this call, and comes back with its result."""
        self.offered = call
        if not self._watch.rests:  # the service took it back just now
            self._watch.rest(self._loop.time())

    def resume(self, block: Mapping[str, Any]) -> None:
        """The client came back."""
        call, self.offered = self.offered, None
        if call is None:
            raise RuntimeError("nothing was offered")
        now = self._loop.time()
        if not call.aborted:
            elapsed_ms = round((now - call.since) * 1000)
            for message in result_messages(call.request, block, workspace=self.workspace, elapsed_ms=elapsed_ms):
                self._appends.put(message)
            self._calls.pop(_key(call.request), None)
        if self._calls:
            self._watch.rest(now)
        else:
            self._watch.go_on(now, delivered=not call.aborted)

    async def close(self, *, cancel: bool = False) -> None:
        """Ends everything. `cancel` tells the service that nobody listens, as far as that is quickly done."""
        if not self._over and cancel and self._failure is None and self.accepted:
            self._appends.put(CANCEL)
            try:
                async with asyncio.timeout(self._timers.cancel):
                    await self._appends.settled()
            except TimeoutError:
                pass
        elif self._over and self._tasks:
            await asyncio.wait({self._tasks[0]}, timeout=self._timers.after_end)
        self._over = True
        for task in self._tasks:
            task.cancel()
        await self._appends.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def supersede(self, error: UpstreamError) -> None:
        """Whoever holds the run gets this error in place of the rest."""
        self._fail(error)

    # -- what it says

    def _say(self, event: Event) -> None:
        self._events.append(event)
        self._chars += _chars(event)
        self._news.set()

    def _fail(self, error: Exception) -> None:
        if self._failure is None and not self._over:
            self._failure = error
            self._appends.stop()
        self._news.set()

    def _end(self, output_tokens: int | None = None) -> None:
        if self._over or self._failure is not None:
            return
        self._over = True
        for call in self._calls.values():  # nobody waits for their results any more
            call.aborted = True
        self._calls.clear()
        parked = "" if self._said else self._blobs.parked_text()
        self._say({"type": "end", "output_tokens": output_tokens, "parked": parked})

    # -- the stream

    async def _read(self, opening: bytes) -> None:
        try:
            await self._converse(opening)
        except (EnvelopeError, WireError) as error:
            self._fail(PROFILE.error(f"unreadable answer: {error}", kind="bad_answer", code=PROTOCOL_ERROR))
        except (aiohttp.ClientError, OSError):
            self._fail(_cut_off("the connection broke"))
        except Exception as error:  # noqa: BLE001 - whoever takes gets it
            self._fail(error)

    async def _converse(self, opening: bytes) -> None:
        response = await self._opened(opening)
        try:
            await self._listen(response)
        finally:
            response.close()  # there may be more of it than anybody wants

    async def _opened(self, opening: bytes) -> aiohttp.ClientResponse:
        """The stream; the first message is sent once its head is here, or takes long."""
        head = asyncio.ensure_future(self._channels.open())
        try:
            await asyncio.wait({head}, timeout=self._timers.early)
            if head.done():
                head.result()  # raises before anything was said
            else:
                self._note("warn", "cursor_stream_head_late")
            self._watch = RunWatch(self._timers, self._loop.time())
            self._begun = True
            self._appends.put(opening)
            self._appends.put(HEARTBEAT)
            return await head
        finally:
            if not head.done():
                head.cancel()

    async def _listen(self, response: aiohttp.ClientResponse) -> None:
        decoder, begun = EnvelopeDecoder(), False
        while chunk := await self._chunk(response):
            if not begun and chunk[0] not in _FLAGS:
                raise document_error(chunk + await read_error(response))
            for envelope in decoder.feed(chunk):
                begun = True
                if self._envelope(envelope):
                    return
            await self._have_room()
        if not self._over:
            self._break_off(begun=begun, pending=decoder.pending)

    async def _chunk(self, response: aiohttp.ClientResponse) -> bytes:
        """The next piece of the stream. Behind the end of the turn only the end of the stream is waited for."""
        if not self._over:
            return await response.content.readany()
        try:
            async with asyncio.timeout(self._timers.after_end):
                return await response.content.readany()
        except TimeoutError:
            return b""

    def _break_off(self, *, begun: bool, pending: bool) -> None:
        """The stream ended without saying so. That is an end when something was said and nothing is open."""
        if not begun and not pending:
            words = f"the service closed the stream without an answer ({HOST_CURE})"
            raise PROFILE.error(words, kind="transport", repeatable=False, code=PROTOCOL_ERROR)
        if pending or self._calls or not self._said:
            raise _cut_off("it ended before its last message")
        self._note("warn", "cursor_stream_without_end")
        self._end()

    async def _have_room(self) -> None:
        """Waits until a client took what there is, and the service our answers."""
        await self._appends.room()
        if self._chars > MAX_WAITING_CHARS:
            self._room.clear()
            self._watch.block()
            await self._room.wait()
            self._watch.unblock(self._loop.time())

    def _envelope(self, envelope: Envelope) -> bool:
        """Acts on one; True when it is the last."""
        if envelope.end:
            error = end_error(envelope.payload)
            if error is not None and not self._over:
                raise error
            self._end()
            self._appends.stop()
            return True
        progress = False
        for name, value in members("AgentServerMessage", envelope.payload):
            if name == "interaction_update":
                progress = progress or any(update != "heartbeat" for update, _ in value)
            else:
                progress = True
            handler = self._HANDLERS.get(name)
            if handler is not None and not self._over:
                handler(self, value)
        self._watch.heard(self._loop.time(), progress=progress)
        if self._turn_over is not None:  # whatever stood behind it in the same payload counted as well
            self._end(self._turn_over.get("output_tokens"))
        return False

    # -- what the service sends

    def _update(self, updates: list[tuple[str, Any]]) -> None:
        for name, value in updates:
            shown = self._SHOWN.get(name)
            if shown is not None:
                shown(self, value)

    def _turn_ended(self, update: Mapping[str, Any]) -> None:
        self._turn_over = update

    def _text(self, update: Mapping[str, Any]) -> None:
        text = update.get("text")
        if text:
            self._said = True
            self.output.chars += len(text)
            self._watch.said()
            self._say({"type": "text", "text": text})

    def _thinking(self, update: Mapping[str, Any]) -> None:
        text = update.get("text")
        if text:
            self.output.chars += len(text)
            self._watch.said()
            self._say({"type": "thinking", "text": text})

    def _tokens(self, update: Mapping[str, Any]) -> None:
        self.output.tokens += max(0, update.get("tokens", 0))

    def _exec(self, message: Mapping[str, Any]) -> None:
        request = ExecRequest.of(message)
        if not self._greeted:
            self._greeted = True
            self._appends.put(exec_heartbeat(0))
        if request.kind == "request_context_args":
            self._tell_context(request)
            return
        tool = tool_of(request, self.tools)
        if tool is None or len(self._calls) >= MAX_OPEN_CALLS:
            self._note("info", "cursor_exec_denied", kind=request.kind or "unknown")
            self._put_all(lambda: denial(request, self.tools.keys(), self.workspace), request)
        elif _key(request) not in self._calls:
            self._open(request, tool)

    def _tell_context(self, request: ExecRequest) -> None:
        name = request.args.get("notes_session_id")
        if name:
            self._renamed(name)
        self._put_all(lambda: context_answer(request, self._context), request)

    def _put_all(self, build: Callable[[], list[Message]], request: ExecRequest) -> None:
        """An answer must come, whatever happens while it is made: the service waits for it for ever."""
        try:
            messages = build()
        except Exception as error:  # noqa: BLE001 - see above
            self._note("error", "cursor_exec_not_answered", kind=request.kind, error=type(error).__name__)
            messages = throw(request, "the client cannot answer this request")
        for message in messages:
            self._appends.put(message)

    def _open(self, request: ExecRequest, tool: str) -> None:
        now = self._loop.time()
        call = OpenCall(request, tool, now, now + self._timers.exec_heartbeat)
        self._calls[_key(request)] = call
        self._watch.rest(now)
        self._say({"type": "tool", "call": call})

    def _control(self, message: Mapping[str, Any]) -> None:
        abort = message.get("abort")
        if abort is None:
            return
        for key, call in list(self._calls.items()):
            if call.request.id == abort.get("id", 0):
                call.aborted = True
                del self._calls[key]
        if not self._calls and self.offered is None and self._watch.rests:
            self._watch.go_on(self._loop.time(), delivered=False)

    def _kv(self, message: Mapping[str, Any]) -> None:
        self._appends.put(self._blobs.answer(message))

    def _query(self, query: Mapping[str, Any]) -> None:
        self._appends.put(query_answer(query))
        plan = plan_of(query)
        if plan:
            self._text({"text": plan})

    # -- time

    async def _keep_alive(self) -> None:
        beat_at = self._loop.time() + self._timers.heartbeat
        while not self._over and self._failure is None:
            limit, _ = self._watch.limit()
            now = self._loop.time()
            # what comes meanwhile may move the moment closer, by no more than a sign of life matters
            await asyncio.sleep(max(0.0, min(beat_at, limit, now + self._timers.exec_heartbeat) - now))
            now = self._loop.time()
            if not self._begun:
                continue
            if now >= beat_at:
                beat_at = now + self._timers.heartbeat
                self._appends.beat(HEARTBEAT)
            self._beat_calls(now)
            limit, verdict = self._watch.limit()
            if now >= limit:
                self._give_up(verdict)

    def _beat_calls(self, now: float) -> None:
        for call in self._calls.values():
            if now >= call.beat_at:
                call.beat_at = now + self._timers.exec_heartbeat
                self._appends.put(exec_heartbeat(call.request.id))

    def _give_up(self, verdict: Verdict) -> None:
        self._note("warn", "cursor_run_given_up", why=verdict.name.lower())
        if verdict is Verdict.QUIET_END:
            self._end()
            return
        self.stalled = verdict is Verdict.STALLED
        words, kind = _TIMEOUTS[verdict]
        self._fail(PROFILE.error(words, kind=kind, repeatable=False))

    def _note(self, level: str, msg: str, **fields: Any) -> None:
        self._log.write(level, LABEL, msg, reqId=self._request_id, run=self.id, **fields)

    #: Updates that become events; every other is progress and no more.
    _SHOWN: ClassVar[Mapping[str, Callable[[Run, Any], None]]] = {
        "text_delta": _text,
        "thinking_delta": _thinking,
        "token_delta": _tokens,
        "turn_ended": _turn_ended,
    }

    _HANDLERS: ClassVar[Mapping[str, Callable[[Run, Any], None]]] = {
        "interaction_update": _update,
        "exec_server_message": _exec,
        "exec_server_control_message": _control,
        "kv_server_message": _kv,
        "interaction_query": _query,
    }


def _is_open(event: Event) -> bool:
    """Whether it is a call that a client has to answer."""
    return event["type"] == "tool" and not event["call"].aborted


def _chars(event: Event) -> int:
    return len(event.get("text", ""))


def _key(request: ExecRequest) -> tuple[int, str]:
    return request.id, request.exec_id


def _cut_off(why: str) -> UpstreamError:
    words = f"the upstream cut the answer: {why}"
    return PROFILE.error(words, kind="transport", repeatable=False, code=PROTOCOL_ERROR)
