"""One answer of an upstream, over as many attempts as it takes.

Until the model has said something, nothing that a reader could see is passed on, so an attempt can be repeated without
a trace; an answer that is sent whole is passed on at its end, and can be repeated until then. Afterwards a failure ends
the answer; only a stream that merely thought may start over once. What upstreams differ in (sign-in, wire, recoveries,
words) is the business of the adapter that the runner is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from proxy.core.messages import Event, MessageStream, broken_off, merged
from proxy.core.reducer import BadAnswer, CutAnswer
from proxy.core.stops import StopSequences, stops_of
from proxy.errors import PROTOCOL_ERROR, BusyError, UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.adapter import AnswerReducer, UpstreamAdapter
from proxy.providers.upstream.held_events import HeldEvents
from proxy.providers.upstream.retry import (
    RETRY_BUDGETS,
    Decision,
    GiveUp,
    Retry,
    Visibility,
    decide,
    decide_empty,
)
from proxy.providers.upstream.transport import Batch

_FRAMING = frozenset({"message_start", "ping"})


class _EmptyAnswer(Exception):
    """A successful answer without content."""


class AttemptRunner:
    """Runs one call. Use once."""

    def __init__(self, call: Call, services: Services, upstream: UpstreamAdapter) -> None:
        self._call = call
        self._services = services
        self._upstream = upstream
        self._wire = upstream.wire
        self._profile = upstream.profile
        self._raise_for_event = upstream.wire.raise_for_event
        self._input_tokens = 0
        self._visible = Visibility.NOTHING
        self._holds = True  # all that another attempt would need
        self._stream = MessageStream(f"msg_{services.new_id()}", call.shown)
        self._stop_words = stops_of(call.request)
        self._stops: StopSequences | None = None

    async def run(self) -> AsyncGenerator[list[Event], None]:
        """The answer in batches. Raises ProxyError."""
        self._call.timings.signing_in()
        await self._upstream.sign_in()
        self._call.timings.signed_in()
        sent, repeated, empty = 1, 0, 0
        while True:
            try:
                async with aclosing(self._attempt(sent)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except _EmptyAnswer:
                nothing = self._upstream.contextualise(self._empty_answer())
                decision = decide_empty(
                    attempt=empty,
                    visible=self._visible,
                    after_tool_result=self._wire.after_tool_result,
                    chance=self._services.random(),
                )
                if isinstance(decision, GiveUp) or not nothing.repeatable:
                    raise self._upstream.client_error(nothing) from None
                empty += 1
            except UpstreamError as error:
                if RETRY_BUDGETS[self._visible].recovery and await self._recover(error):
                    sent += 1
                    continue
                decision = decide(error, attempt=repeated, visible=self._visible, chance=self._services.random())
                self._log_failure(error, sent, decision)
                if isinstance(decision, GiveUp):
                    raise self._upstream.client_error(error) from None
                repeated += 1
            sent += 1
            await self._services.sleep(decision.after)

    async def _recover(self, error: UpstreamError) -> bool:
        return await self._upstream.recover(error) or self._wire.recover(error)

    async def opening(self) -> list[Event]:
        """`message_start`, with an estimate that is made while the upstream is being contacted. Asked for before `run`,
        it is sent ahead of work that comes before the answer."""
        try:
            self._input_tokens = await self._wire.estimate()
        except BusyError:  # a number that the end of the stream corrects is no reason to fail
            self._input_tokens = self._wire.rough_estimate()
        self._stream.input_tokens = self._input_tokens
        self._stream.start()
        return self._stream.take()

    async def _attempt(self, number: int) -> AsyncGenerator[list[Event], None]:
        self._stream = self._stream.afresh(shown=self._visible > Visibility.BUFFERED)
        if self._visible == Visibility.BUFFERED:  # nothing is left of what was said before
            self._visible = Visibility.NOTHING
        self._call.record(UpstreamStarted(number))
        upstream = self._upstream.contact(number)
        async with aclosing(upstream):
            first = asyncio.ensure_future(anext(upstream, None))
            try:
                if not self._stream.started:
                    yield await self.opening()
                batch = await first
            finally:
                await _settle(first)
            async for events in self._reduce(batch, upstream):
                yield events

    async def _reduce(
        self, batch: Batch | None, upstream: AsyncGenerator[Batch, None]
    ) -> AsyncGenerator[list[Event], None]:
        """Upstream batches to Messages batches; what a reader could see is held until the model has said something, or
        until the end when nobody reads before it."""
        reducer = self._wire.reducer(self._stream)
        words = self._stop_words
        self._stops = StopSequences(words, input_tokens=self._input_tokens) if words else None
        held = HeldEvents()
        try:
            while batch is not None:
                out, failure = self._feed(batch, reducer)
                out = self._stops.feed(out) if self._stops else out
                over = reducer.finished or bool(self._stops and self._stops.done)
                if reducer.finished and not (reducer.produced or self._may_be_empty(reducer)):
                    raise _EmptyAnswer
                if self._visible is not Visibility.CONTENT:
                    out = self._shown(out, held, said=reducer.produced or over, over=over)
                if out:
                    yield out
                    self._let_go()
                if over:
                    return
                if failure is not None:
                    raise failure
                batch = await anext(upstream, None)
        except (BadAnswer, UpstreamError) as error:
            if rest := self._rest(reducer):
                yield rest
            raise self._upstream.contextualise(self._as_upstream(error)) from None

    def _shown(self, out: list[Event], held: HeldEvents, *, said: bool, over: bool) -> list[Event]:
        """What of a batch comes out now, with what was held before it."""
        if said:
            self._call.timings.generating()
        if said or self._visible > Visibility.BUFFERED:
            self._visible = max(self._visible, self._seen(over=over))
        if self._visible <= Visibility.BUFFERED:
            held.add(event for event in out if event["type"] not in _FRAMING)
            return [event for event in out if event["type"] in _FRAMING]
        return held.take() + out

    def _let_go(self) -> None:
        """Behind the first batch that was read and cannot be taken back."""
        if self._holds and self._visible is Visibility.CONTENT:
            self._holds = False
            self._wire.let_go()

    def _seen(self, *, over: bool) -> Visibility:
        """What the client sees of an answer in which something was said."""
        if self._call.folded and not over:
            return Visibility.BUFFERED
        return Visibility.CONTENT if self._stream.committed else Visibility.THINKING

    def _feed(self, batch: Batch, reducer: AnswerReducer) -> tuple[list[Event], BadAnswer | UpstreamError | None]:
        """The events of a batch up to its end or its first failure: how the upstream's data was cut into pieces must
        not decide what comes out before an error."""
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
        """What must still be said before the stream breaks: nothing, as long as nothing was shown."""
        rest = reducer.interrupt()
        if self._visible <= Visibility.BUFFERED:
            return []
        self._visible = self._seen(over=True)  # what waited behind a thought came out
        rest = broken_off(rest) if self._call.converted else rest
        return self._stops.feed(rest) if self._stops else rest

    def _as_upstream(self, error: BadAnswer | UpstreamError) -> UpstreamError:
        if isinstance(error, UpstreamError):
            return error
        kind = "transport" if isinstance(error, CutAnswer) else "bad_answer"
        return self._profile.error(str(error), kind=kind, code=PROTOCOL_ERROR)

    # -- failures

    def _may_be_empty(self, reducer: AnswerReducer) -> bool:
        """Whether an answer without content is passed on. Clients check a model by asking for a single token: any
        answer will do; and one that was cut by a limit or a filter says so itself."""
        checking = self._call.request.get("max_tokens") in (0, 1)
        return not self._profile.empty_is_failure or checking or reducer.incomplete

    def _empty_answer(self) -> UpstreamError:
        """The model finished without saying anything, every time it was asked."""
        words = "the model completed without producing any output; repeating the request may help"
        return self._profile.error(words, kind="overloaded")

    def _log_failure(self, error: UpstreamError, number: int, decision: Decision) -> None:
        self._services.log.write(
            "warn",
            self._profile.label,
            f"{self._profile.service}_upstream_request_failed",
            reqId=self._call.request_id,
            attempt=number,
            kind=error.kind,
            status=error.status,
            upstreamId=error.upstream_id,
            retryInS=decision.after if isinstance(decision, Retry) else None,
        )


async def _settle(task: asyncio.Future[Any]) -> None:
    """Ends a task whose result nobody may have fetched."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
