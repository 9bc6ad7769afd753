"""One run: a conversation with the service that outlives the request it answers, while a tool of the client is at work.

It has three tasks, which end with it: one reads the service's messages and answers its requests, one sends our messages
(`Appends`), one keeps the run alive and watches the time. The run's holder `take`s its output, as events:

    {"type": "text", "text": …}  {"type": "thinking", "text": …}  {"type": "tool", "call": OpenCall}
    {"type": "end", "output_tokens": int | None, "parked": str}

`parked` is an answer that the service left in its store instead of sending it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

import aiohttp

from proxy.errors import UpstreamError
from proxy.observe.capture.contract import NULL_ATTEMPT, AttemptCapture, RequestCapture
from proxy.observe.lifecycle import Log
from proxy.providers.p5_cursor.bridge.calls import ExecRequest
from proxy.providers.p5_cursor.bridge.plans import plan_for
from proxy.providers.p5_cursor.bridge.results import result_text
from proxy.providers.p5_cursor.bridge.steps import NOWHERE, Returned, Step
from proxy.providers.p5_cursor.catalog import LABEL
from proxy.providers.p5_cursor.failures import PROFILE, end_error
from proxy.providers.p5_cursor.run.calls import OpenCall, OpenCalls
from proxy.providers.p5_cursor.run.channels import Appends, Channels, EnvelopeStream, cut_off, unreadable
from proxy.providers.p5_cursor.run.events import Event, RunOutput, WaitingEvents, as_events
from proxy.providers.p5_cursor.run.replies import CANCEL, HEARTBEAT, Message, answered, exec_heartbeat, unbuilt
from proxy.providers.p5_cursor.run.requests import ServiceRequests
from proxy.providers.p5_cursor.run.watch import RunTimers, RunWatch, WaitEnd
from proxy.providers.p5_cursor.wire.envelopes import Envelope
from proxy.providers.p5_cursor.wire.protobuf import WireError, encode, members

#: Messages, each with its bytes.
Written = list[tuple[Message, bytes]]
#: Does work, off the loop when it may take long.
Aside = Callable[[Callable[[], "Written | Step"]], Awaitable["Written | Step"]]

#: Envelopes up to this size, in bytes, are read on the loop, larger ones in a thread.
READ_AT_ONCE = 128 * 1024
#: Envelopes that are handled before other tasks get a turn; one piece of the stream may complete hundreds.
TOGETHER = 16

#: The end of a wait in words.
_WORDS: dict[WaitEnd, str] = {
    WaitEnd.NO_START: "the service did not begin to answer; a proxy on the way that holds back streams looks the same",
    WaitEnd.SILENT: "the service fell silent",
    WaitEnd.NO_PROGRESS: "the service sent nothing but signs of life",
    WaitEnd.TOO_LONG: "the run took too long",
    WaitEnd.STALLED: "the service did not go on after the result of a tool",
    WaitEnd.PAUSE_OVER: "the result of a tool did not come in time",
}


class Run:
    """One run of the service. Make it with a running loop, then `start` it; `close` it in the end.

    context    the description of this machine; `workspace` is its directory
    renamed    receives the id of a conversation that the service prefers
    silent     called when the service sends nothing more, for any reason
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
        silent: Callable[[Run], None],
    ) -> None:
        self.id = channels.id
        self.place = NOWHERE  # the client's tools that may be asked for
        self.workspace = workspace
        self.output = RunOutput()
        self.offered: OpenCall | None = None  # the call that the client has
        self.capture: AttemptCapture = NULL_ATTEMPT  # of the request that is being answered
        self._channels = channels
        self._timers = timers
        self._log = log
        self._request_id = request_id
        self._silent = silent
        self._now = asyncio.get_running_loop().time
        self._appends = Appends(channels.append, self._break)
        self._requests = ServiceRequests(self._answer, context, workspace, renamed, self._note)
        self._watch = RunWatch(timers, self._now())
        self._calls = OpenCalls(timers.exec_heartbeat)
        self._events = WaitingEvents()
        self._head: Mapping[str, str] = {}  # of the stream
        self._turn_ended: Mapping[str, Any] | None = None
        self._spoke = self._over = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def missed_blob(self) -> bool:
        """Whether the service asked for a blob that is not in the store."""
        return self._requests.blobs.missed

    @property
    def lost(self) -> bool:
        """Whether the run can no longer receive a client tool's result, and has nothing more to say."""
        return self._events.failure is not None or (self._over and not self._events.tell_more)

    # -- what the holder does

    def start(self, opening: bytes) -> None:
        """Begins with the opening message."""
        self._tasks.append(asyncio.create_task(self._read(opening)))

    async def take(self) -> list[Event]:
        """Takes the output since the last call, before the first call of a tool; or that call. Raises ProxyError."""
        return await self._events.take()

    def pause(self, call: OpenCall, tool_use_id: str) -> None:
        """Notes that the client has this call of a tool, and will return with its result."""
        self.offered, call.tool_use_id = call, tool_use_id
        self._watch.rest(self._now())
        self._wait_for_client()

    async def resume(self, block: Mapping[str, Any], aside: Aside, capture: RequestCapture) -> None:
        """Continues with the client's `tool_result` block, which may be large. From now on the caller holds the run,
        even when this raises: no other request can bring the result."""
        call, self.offered = self.offered, None
        if call is None:
            raise RuntimeError("nothing was offered")
        results = await aside(lambda: self._advance(call, block))
        now = self._now()
        listens = not call.aborted and not self._over
        messages = [message for message, _ in results] if listens and isinstance(results, list) else []
        self.capture = self._channels.attempt(capture, {"messages": messages}, resumed=True)
        self.capture.answered(200, self._head)
        if isinstance(results, Step):
            if listens:
                call.step, call.tool_use_id = results, ""
                self._events.say({"type": "tool", "call": call})
        elif listens:
            for _, data in results:
                self._appends.put(data)
            self._calls.answered(call)
        if self._calls:
            self._watch.rest(now)
        else:
            self._watch.go_on(now, delivered=not call.aborted)

    def _advance(self, call: OpenCall, block: Mapping[str, Any]) -> Written | Step:
        """The next call of the client, or the messages that answer the service."""
        elapsed_ms = round((self._now() - call.since) * 1000)
        try:
            try:
                return call.plan.send(Returned(result_text(block), bool(block.get("is_error")), elapsed_ms))
            except StopIteration as done:
                return _written(answered(call.request, done.value))
        except Exception:
            return _written(unbuilt(call.request))

    def fail(self, error: Exception) -> None:
        """Makes the run's holder get this error after the output."""
        if not self._over:
            self._events.fail(error)
            self._silent(self)

    async def close(self) -> None:
        """Ends everything, and cancels the run at the service if that is quickly done."""
        if not self._over and self._appends.sent:
            self._appends.put(CANCEL)
            try:
                async with asyncio.timeout(self._timers.cancel):
                    await self._appends.settled()
            except TimeoutError:
                pass
        elif self._over and self._tasks:  # the end of the stream closely follows that of the turn
            await asyncio.wait(self._tasks[:1], timeout=self._timers.after_end)
        self._over = True
        for task in self._tasks:
            task.cancel()
        await self._appends.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.place = NOWHERE
        self._tasks = []  # their outcomes keep references to everything they used

    # -- the stream

    async def _read(self, opening: bytes) -> None:
        try:
            stream = await self._open(opening)
            try:
                await self._listen(stream)
            finally:
                stream.close()  # the rest is not needed
        except WireError as error:
            self._break(unreadable(error))
        except Exception as error:  # raised to the taker
            self._break(error)

    async def _open(self, opening: bytes) -> EnvelopeStream:
        """Opens the stream; the first message is sent once its head is here, or takes long."""
        head = asyncio.ensure_future(self._channels.open(self.capture))
        try:
            await asyncio.wait({head}, timeout=self._timers.early)
            if head.done():
                head.result()  # raises before there is any output
            else:
                self._note("warn", "cursor_stream_head_late")
            self._watch = RunWatch(self._timers, self._now())
            self._appends.put(opening)
            self._appends.put(HEARTBEAT)
            self._tasks.append(asyncio.create_task(self._keep_alive()))
            response = await asyncio.shield(head)
            self._head = response.headers
            return EnvelopeStream(response)
        except BaseException:
            await _discard(head)
            raise

    async def _listen(self, stream: EnvelopeStream) -> None:
        while (envelopes := await stream.read(self._timers.after_end if self._over else None)) is not None:
            self._watch.heard(self._now(), inside=stream.cut)
            for number, envelope in enumerate(envelopes, 1):
                if self._ended(envelope) if envelope.end else self._hear(await _members(envelope)):
                    return
                await self._have_room()
                if number % TOGETHER == 0:
                    await asyncio.sleep(0)
        if self._over:
            return
        if stream.cut or self._calls or not self._spoke:
            raise cut_off("it ended before its last message")
        self._note("warn", "cursor_stream_without_end")
        self._end()

    async def _have_room(self) -> None:
        """Waits until the service took our answers, and the client the output."""
        await self._appends.room()
        while self._events.full:
            self._watch.block()
            await self._events.taken()
            self._watch.unblock(self._now())

    def _ended(self, envelope: Envelope) -> bool:
        """Handles the last envelope."""
        if self.capture is not NULL_ATTEMPT:
            self.capture.events(({"end": envelope.payload.decode("utf-8", "replace")},))
        error = end_error(envelope.payload)
        if error is not None and not self._over:
            raise error
        self._end()
        self._appends.stop()
        return True

    def _hear(self, found: list[tuple[str, Any]]) -> bool:
        """Handles every member of an envelope that is not the last one."""
        progress = False
        if self.capture is not NULL_ATTEMPT:
            self.capture.events(as_events(found))
        for name, value in found:
            progress = progress or name != "interaction_update" or any(update != "heartbeat" for update, _ in value)
            handler = self._HANDLERS.get(name)
            if handler is not None and not self._over:
                handler(self, value)
        if progress:
            self._watch.moved(self._now())
        if self._turn_ended is not None:  # the rest of its envelope counted as well
            self._end(self._turn_ended.get("output_tokens"))
        return False

    # -- what the service says

    def _answer(self, message: Message) -> None:
        self.capture.sent(message)
        self._appends.put(message)

    def _update(self, updates: list[tuple[str, Any]]) -> None:
        for name, value in updates:
            shown = self._SHOWN.get(name)
            if shown is not None:
                shown(self, value)

    def _text(self, update: Mapping[str, Any]) -> None:
        self._spoke = self._speak("text", update.get("text")) or self._spoke

    def _thinking(self, update: Mapping[str, Any]) -> None:
        self._speak("thinking", update.get("text"))

    def _speak(self, kind: str, text: str | None) -> bool:
        if not text:
            return False
        self.output.chars += len(text)
        self._watch.said(visible=kind == "text")
        self._events.say({"type": kind, "text": text})
        return True

    def _tokens(self, update: Mapping[str, Any]) -> None:
        self.output.tokens += max(0, update.get("tokens", 0))

    def _turn(self, update: Mapping[str, Any]) -> None:
        self._turn_ended = update

    def _exec(self, message: Mapping[str, Any]) -> None:
        request = ExecRequest.of(message)
        self._requests.greet()
        if request.kind == "request_context_args":
            self._requests.tell_context(request)
            return
        if self._calls.is_open(request):
            return
        plan = None if self._calls.full else plan_for(request, self.place)
        if plan is None:
            self._requests.deny(request, self.place, full=self._calls.full)
            return
        try:
            step = next(plan)
        except Exception:
            for message in unbuilt(request):
                self._answer(message)
            return
        now = self._now()
        call = self._calls.open(request, plan, step, now)
        self._watch.rest(now)
        self._events.say({"type": "tool", "call": call})

    def _control(self, message: Mapping[str, Any]) -> None:
        abort = message.get("abort")
        if abort is not None:
            self._calls.abort(abort.get("id", 0))
            if not self._calls and self.offered is None and self._watch.rests:
                self._watch.go_on(self._now(), delivered=False)

    def _kv(self, message: Mapping[str, Any]) -> None:
        self._requests.answer_kv(message)

    def _query(self, query: Mapping[str, Any]) -> None:
        self._text({"text": self._requests.answer_query(query)})

    def _end(self, output_tokens: int | None = None) -> None:
        if self._over or self._events.failure is not None:
            return
        self._over = True
        if self.offered is None:
            self._calls.forget()
        else:  # the client returns, and another run continues
            self._calls.abort()
        parked = "" if self._spoke else self._requests.blobs.parked_text()
        self._events.say({"type": "end", "output_tokens": output_tokens, "parked": parked})
        self._wait_for_client()

    def _wait_for_client(self) -> None:
        """Keeps output after the end of a turn for a client that is at work, as long as it may take."""
        if self.lost:
            self._silent(self)
        elif self._over and self.offered is not None:
            self._tasks.append(asyncio.create_task(self._expire()))

    async def _expire(self) -> None:
        await asyncio.sleep(self._timers.pause)
        if self.offered is not None:
            self._events.fail(_late(WaitEnd.PAUSE_OVER))
            self._silent(self)

    def _break(self, error: Exception) -> None:
        """Fails the run: the connection, or what came over it, is unusable."""
        self._appends.stop()
        self.fail(error)

    # -- time

    async def _keep_alive(self) -> None:
        beat_at = self._now() + self._timers.heartbeat
        while True:
            now = self._now()
            # events meanwhile may bring the moment closer, by no more than matters for a sign of life
            moment = min(beat_at, self._watch.limit()[0], now + self._timers.exec_heartbeat, *self._calls.beats_at)
            await asyncio.sleep(max(0.0, moment - now))
            if self._over or self._events.failure is not None:
                return
            now = self._now()
            if now >= beat_at:
                beat_at = now + self._timers.heartbeat
                self._appends.beat(HEARTBEAT)
            for exec_id in self._calls.beats(now):
                self._appends.put(exec_heartbeat(exec_id))
            limit, verdict = self._watch.limit()
            if now >= limit:
                self._time_is_up(verdict)
                return

    def _time_is_up(self, verdict: WaitEnd) -> None:
        self._note("warn", "cursor_run_given_up", why=verdict.name.lower())
        if verdict is WaitEnd.QUIET_END:
            self._end()
        else:
            self.fail(_late(verdict))

    def _note(self, level: str, what: str, **fields: Any) -> None:
        self._log.write(level, LABEL, what, reqId=self._request_id, run=self.id, **fields)

    #: Updates that have an effect; every other is only progress.
    _SHOWN: ClassVar[Mapping[str, Callable[[Run, Any], None]]] = {
        "text_delta": _text,
        "thinking_delta": _thinking,
        "token_delta": _tokens,
        "turn_ended": _turn,
    }

    _HANDLERS: ClassVar[Mapping[str, Callable[[Run, Any], None]]] = {
        "interaction_update": _update,
        "exec_server_message": _exec,
        "exec_server_control_message": _control,
        "kv_server_message": _kv,
        "interaction_query": _query,
    }


def _written(messages: list[Message]) -> Written:
    return [(message, encode("AgentClientMessage", message)) for message in messages]


def _late(verdict: WaitEnd) -> UpstreamError:
    return PROFILE.error(_WORDS[verdict], kind="upstream_timeout", repeatable=False)


async def _discard(head: asyncio.Future[aiohttp.ClientResponse]) -> None:
    """Ends a request for a stream that is no longer needed."""
    head.cancel()
    await asyncio.wait({head})
    if not head.cancelled() and head.exception() is None:
        head.result().close()


async def _members(envelope: Envelope) -> list[tuple[str, Any]]:
    """Reads the members of an envelope, in a thread if it is large: one may repeat the whole conversation, and would
    hold up others."""
    if len(envelope.payload) > READ_AT_ONCE:
        return await asyncio.to_thread(members, "AgentServerMessage", envelope.payload)
    return members("AgentServerMessage", envelope.payload)
