"""One answer of an upstream, over as many attempts as it takes.

Nothing that a reader could see is passed on before the model's first output, so an attempt can be repeated without a
trace. An answer that is sent whole can be repeated until its end. Later a failure ends the answer; only a stream that
merely thought may start over once. The adapter knows how upstreams differ (sign-in, wire, recoveries, messages).

`Attempts` decides what follows a failure, whatever reads the answer: `AttemptRunner` reduces a stream, `Attempts.ask`
is for answers that are read whole or passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from proxy.core.blocks import DELTAS, How
from proxy.core.messages import MAX_REPLY_CHARS, Event, MessageStream, block_delta, broken_off, merged
from proxy.core.reducer import BadAnswer, CutAnswer
from proxy.core.sizes import least_size
from proxy.core.stops import StopSequences, stops_of
from proxy.core.visible import FRAMING_EVENTS, Visible
from proxy.errors import PROTOCOL_ERROR, BusyError, UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.adapter import AnswerReducer, UpstreamAdapter
from proxy.providers.upstream.event_reader import Batches, TakeBatch, next_batch
from proxy.providers.upstream.failures import RETRY_BUDGETS, Decision, GiveUp, Retry, decide, decide_empty
from proxy.providers.upstream.transport import Batch, Service

_JOINED = (How.APPEND, How.PARSE)


class HeldEvents:
    """Collects events until `take`. False while there are none.

    >>> held = HeldEvents()
    >>> held.add(block_delta(0, {"type": "text_delta", "text": text}) for text in "abc")
    >>> held.take()
    [{'type': 'content_block_delta', 'index': 0, 'delta': {'type': 'text_delta', 'text': 'abc'}}]
    """

    def __init__(self, max_chars: int = MAX_REPLY_CHARS) -> None:
        self._max_chars = max_chars
        self._size = 0
        self._events: list[Event] = []
        self._run: tuple[int, str] | None = None  # block index and type of the delta that can be extended
        self._pieces: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._events or self._pieces)

    def add(self, events: Iterable[Event]) -> None:
        """Adds events. Raises BadAnswer when they become too many."""
        for event in events:
            delta = event["delta"] if event["type"] == "content_block_delta" else None
            kind = DELTAS.get(delta["type"]) if delta is not None else None
            if delta is None or kind is None or kind.how not in _JOINED:
                self._end_run()
                self._events.append(event)
                self._grow(least_size(event, self._max_chars))
                continue
            run = (event["index"], kind.name)
            if run != self._run:
                self._end_run()
                self._run = run
            self._pieces.append(delta[kind.carries])
            self._grow(len(delta[kind.carries]))

    def take(self) -> list[Event]:
        self._end_run()
        events, self._events, self._size = self._events, [], 0
        return events

    def _end_run(self) -> None:
        if self._run is not None:
            (index, name), pieces = self._run, self._pieces
            self._events.append(block_delta(index, DELTAS[name].of("".join(pieces))))
            self._run, self._pieces = None, []

    def _grow(self, chars: int) -> None:
        self._size += chars
        if self._size > self._max_chars:
            raise BadAnswer(f"the answer passed {self._max_chars} characters")


T = TypeVar("T")


class _EmptyAnswer(Exception):
    """A successful answer without content."""


class Attempts:
    """Counts the attempts of one request, and decides after each failure.

    number   of the attempt that runs, from 1
    recover  removes the cause of a failure; True when the request should be sent again at once
    """

    def __init__(
        self,
        services: Services,
        service: Service,
        request_id: str,
        recover: Callable[[UpstreamError], Awaitable[bool]],
    ) -> None:
        self.number = 1
        self._services = services
        self._service = service
        self._request_id = request_id
        self._recover = recover
        self._repeated = self._empty = 0

    async def ask(
        self, send: Callable[[int], Awaitable[T]], repeats: Callable[[UpstreamError], bool] = lambda _error: True
    ) -> T:
        """Returns what `send` makes of an attempt, given its number. Raises its last UpstreamError, and any other
        error.

        repeats  whether to wait and ask again after this error; where not, the caller reports it
        """
        while True:
            try:
                return await send(self.number)
            except UpstreamError as error:
                wait = await self.after(error, repeats=repeats(error))
                if wait is None:
                    raise
            await self.wait(wait)

    async def after(
        self,
        error: UpstreamError,
        visible: Visible = Visible.NOTHING,
        *,
        repeats: bool = True,
        rewrite: Callable[[UpstreamError], bool] = lambda _error: False,
    ) -> float | None:
        """Seconds until the next attempt, None when there is none.

        visible  what the client has seen of the answer
        rewrite  writes another body in place of a refused one, if it can
        """
        if RETRY_BUDGETS[visible].recovery and (await self._recover(error) or rewrite(error)):
            self.number += 1
            return 0.0
        if not repeats:
            return None
        decision = decide(error, attempt=self._repeated, visible=visible, chance=self._services.random())
        self._log(error, decision)
        self._repeated += 1
        return self._next(decision)

    def after_nothing(self, visible: Visible, *, after_tool_result: bool) -> float | None:
        """Seconds until an empty answer is requested again, None when it is not."""
        chance = self._services.random()
        decision = decide_empty(
            attempt=self._empty, visible=visible, after_tool_result=after_tool_result, chance=chance
        )
        self._empty += 1
        return self._next(decision)

    def _next(self, decision: Decision) -> float | None:
        if isinstance(decision, GiveUp):
            return None
        self.number += 1
        return decision.after

    async def wait(self, seconds: float) -> None:
        if seconds:
            await self._services.sleep(seconds)

    def _log(self, error: UpstreamError, decision: Decision) -> None:
        self._services.log.write(
            "warn",
            self._service.label,
            f"{self._service.service}_upstream_request_failed",
            reqId=self._request_id,
            attempt=self.number,
            kind=error.kind,
            status=error.status,
            upstreamId=error.upstream_id,
            retryInS=decision.after if isinstance(decision, Retry) else None,
        )


class AttemptRunner:
    """Runs one call. Use once."""

    def __init__(self, call: Call, services: Services, upstream: UpstreamAdapter) -> None:
        self._call = call
        self._upstream = upstream
        self._wire = upstream.wire
        self._profile = upstream.profile
        self._raise_for_event = upstream.wire.raise_for_event
        self._attempts = Attempts(services, upstream.profile, call.request_id, upstream.recover)
        self._input_tokens = 0
        self._visible = Visible.NOTHING
        self._holds = True  # whether all that another attempt would need is kept
        self._stream = MessageStream(f"msg_{services.new_id()}", call.shown)
        self._stop_words = stops_of(call.request) if "stop_sequences" in call.request else ()
        self._stops: StopSequences | None = None
        self._held: HeldEvents | None = None
        self._over = False
        self._to: TakeBatch | None = None  # takes batches of the answer
        self._left: tuple[list[Event], BadAnswer | UpstreamError | None] | None = None  # what was read and not taken

    async def run(self) -> Batches:
        """Yields the answer in batches. Raises ProxyError. A single generator: each layer between an upstream and the
        writer costs every event. Once content flows, batches can be taken without it."""
        wait: float | None
        await self._upstream.sign_in()
        while True:
            self._begin()
            try:
                async with aclosing(self._upstream.contact(self._attempts.number)) as upstream:
                    ahead = not (self._stream.started or self._wire.estimates_at_once)
                    first = asyncio.ensure_future(anext(upstream, None)) if ahead else None
                    try:
                        if not self._stream.started:
                            yield await self.opening()
                        batch = await (anext(upstream, None) if first is None else first)
                    finally:
                        await _settle(first)
                    reducer = self._reading()
                    take = partial(self._take, reducer)
                    try:
                        while batch is not None:
                            out, failure = self._left_over() or self._read(batch, reducer)
                            if out:
                                self._to = yield out
                                self._let_go()
                            if self._over:
                                return
                            if failure is not None:
                                raise failure
                            batch = await next_batch(upstream, take if self._flows() else None)
                    except (BadAnswer, UpstreamError) as error:
                        if rest := self._rest(reducer):
                            yield rest
                        raise self._upstream.contextualise(self._as_upstream(error), self._visible) from None
                return
            except _EmptyAnswer:
                wait = self._after_nothing()
            except UpstreamError as error:
                wait = await self._attempts.after(error, self._visible, rewrite=self._wire.recover)
                if wait is None:
                    raise self._upstream.client_error(error) from None
            await self._attempts.wait(wait)

    async def opening(self) -> list[Event]:
        """`message_start`, with an estimate that is made while the upstream is contacted. Called before `run`, it
        precedes other work before the answer."""
        try:
            self._input_tokens = await self._wire.estimate()
        except BusyError:  # the end of the stream corrects the number, so it is no reason to fail
            self._input_tokens = self._wire.rough_estimate()
        self._stream.input_tokens = self._input_tokens
        self._stream.start()
        return self._stream.take()

    def _begin(self) -> None:
        """Begins another attempt, without any held part of an earlier answer."""
        self._stream = self._stream.afresh(shown=self._visible > Visible.BUFFERED)
        if self._visible is Visible.BUFFERED:
            self._visible = Visible.NOTHING
        self._call.record(UpstreamStarted(self._attempts.number))

    def _reading(self) -> AnswerReducer:
        """Makes the reducer for this attempt's answer."""
        words = self._stop_words
        self._stops = StopSequences(words, input_tokens=self._input_tokens) if words else None
        self._held = None
        self._over = False
        return self._wire.reducer(self._stream)

    def _read(self, batch: Batch, reducer: AnswerReducer) -> tuple[list[Event], BadAnswer | UpstreamError | None]:
        """An upstream batch as Messages events, and its failure. Visible events are held until the model's first
        output, or until the end when the answer is sent whole."""
        out, failure = self._feed(batch, reducer)
        out = self._stops.feed(out) if self._stops else out
        self._over = reducer.finished or bool(self._stops and self._stops.done)
        if reducer.finished and not (reducer.produced or self._may_be_empty(reducer)):
            raise _EmptyAnswer
        if self._visible is not Visible.CONTENT:
            out = self._shown(out, said=reducer.produced or self._over)
        return out, failure

    def _flows(self) -> bool:
        """Whether further batches can be taken: nothing is held, and nothing may be asked for again."""
        return self._to is not None and self._stops is None and self._visible is Visible.CONTENT

    def _take(self, reducer: AnswerReducer, batch: Batch) -> bool:
        """Reads a batch and passes it on. False if it is to be yielded: `_left` then has what was read."""
        out, failure = self._read(batch, reducer)
        if failure is None and not self._over and (not out or (self._to is not None and self._to(out))):
            return True
        self._left = out, failure
        return False

    def _left_over(self) -> tuple[list[Event], BadAnswer | UpstreamError | None] | None:
        left, self._left = self._left, None
        return left

    def _shown(self, out: list[Event], *, said: bool) -> list[Event]:
        """The events of a batch that are passed on now, after those that were held."""
        if said:
            self._call.timings.generating()
        if said or self._visible > Visible.BUFFERED:
            self._visible = max(self._visible, self._seen(over=self._over))
        if self._visible <= Visible.BUFFERED:
            kept = [event for event in out if event["type"] not in FRAMING_EVENTS]
            if kept:
                self._held = self._held or HeldEvents()
                self._held.add(kept)
            return [event for event in out if event["type"] in FRAMING_EVENTS] if kept else out
        return out if self._held is None else self._held.take() + out

    def _let_go(self) -> None:
        """Releases what a repetition would need, after the first batch that cannot be taken back."""
        if self._holds and self._visible is Visible.CONTENT:
            self._holds = False
            self._wire.let_go()

    def _seen(self, *, over: bool) -> Visible:
        """The client's view of an answer with output."""
        return Visible.BUFFERED if self._call.folded and not over else self._stream.visible

    def _feed(self, batch: Batch, reducer: AnswerReducer) -> tuple[list[Event], BadAnswer | UpstreamError | None]:
        """The events of a batch up to its end or its first failure. The split of the upstream's data must not decide
        what comes out before an error."""
        out: list[Event] = []
        try:
            for event in batch:
                self._raise_for_event(event)
                out += reducer.feed(event)
                if reducer.finished:
                    break
        except (BadAnswer, UpstreamError) as error:
            return merged(out), error
        return merged(out), None

    def _rest(self, reducer: AnswerReducer) -> list[Event]:
        """Events that must precede the break of a stream: none while nothing was shown."""
        rest = reducer.interrupt()
        if self._visible <= Visible.BUFFERED:
            return []
        self._visible = self._seen(over=True)  # the end of a thought released waiting events
        rest = broken_off(rest) if self._call.converted else rest
        return self._stops.feed(rest) if self._stops else rest

    def _as_upstream(self, error: BadAnswer | UpstreamError) -> UpstreamError:
        if isinstance(error, UpstreamError):
            return error
        kind = "transport" if isinstance(error, CutAnswer) else "bad_answer"
        return self._profile.error(str(error), kind=kind, code=PROTOCOL_ERROR)

    def _may_be_empty(self, reducer: AnswerReducer) -> bool:
        """Whether an empty answer is passed on. Clients check a model by asking for a single token, and accept any
        answer. One that was cut by a limit or a filter says so itself."""
        checking = self._call.request.get("max_tokens") in (0, 1)
        return not self._profile.empty_is_failure or checking or reducer.incomplete

    def _after_nothing(self) -> float:
        """Seconds to wait after an empty answer. Raises UpstreamError when the model gave one every time."""
        words = "the model completed without producing any output; repeating the request may help"
        nothing = self._upstream.contextualise(self._profile.error(words, kind="overloaded"), self._visible)
        wait = self._attempts.after_nothing(self._visible, after_tool_result=self._wire.after_tool_result)
        if wait is None or not nothing.repeatable:
            raise self._upstream.client_error(nothing) from None
        return wait


async def _settle(task: asyncio.Future[Any] | None) -> None:
    """Ends a task whose result may not have been fetched."""
    if task is None:
        return
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
