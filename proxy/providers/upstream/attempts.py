"""One answer of an upstream, over as many attempts as it takes.

Until the model has said something, nothing that a reader could see is passed on, so an attempt can be repeated without
a trace. Afterwards a failure ends the answer; only a stream that merely thought may start over once. What upstreams
differ in (sign-in, wire, cures, words) is what the subclasses fill in.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Protocol

from proxy.core.convert.messages_to_responses import output_format
from proxy.core.messages import Event, MessageStream
from proxy.core.reducer import BadAnswer, CallCut, CutAnswer
from proxy.core.stops import StopSequences, stops_of
from proxy.core.tools.schema import has_optional, restore_text
from proxy.errors import PROTOCOL_ERROR, BusyError, CallCutError, UpstreamError
from proxy.observe.lifecycle import UpstreamStarted
from proxy.providers.contract import Call, Services
from proxy.providers.upstream.retry import COMMIT, Again, Decision, GiveUp, Shown, decide, decide_empty
from proxy.providers.upstream.transport import Batch

_FRAMING = frozenset({"message_start", "ping"})


class Reducer(Protocol):
    """Upstream events to Messages events."""

    produced: bool
    only_thinking: bool
    finished: bool
    incomplete: bool  # the answer ended at a limit or by a filter

    def feed(self, event: Mapping[str, Any]) -> list[Event]: ...

    def interrupt(self) -> list[Event]: ...


class _Empty(Exception):
    """A successful answer without content."""


class Turn(ABC):
    """Runs one call. Use once."""

    label: str
    #: The name of the service in the log's messages.
    service: str
    #: Whether an answer without content is a failure of this upstream.
    empty_is_failure = False

    def __init__(self, call: Call, services: Services) -> None:
        self._call = call
        self._services = services
        self._message_id = f"msg_{services.new_id()}"
        self._input_tokens = 0
        self._shown = Shown.NOTHING
        self._stream = self._fresh_stream(started=False)
        self._stops: StopSequences | None = None

    # -- what an upstream fills in

    @abstractmethod
    async def sign_in(self) -> None:
        """Gets the credential. Raises ProxyError."""

    @abstractmethod
    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        """Sends the request, for the `number`th time; yields batches of upstream events. Raises UpstreamError."""

    @abstractmethod
    def reducer(self, stream: MessageStream) -> Reducer:
        """A fresh reducer for one attempt."""

    @abstractmethod
    async def estimate(self) -> int:
        """Input tokens, for `message_start`. May raise BusyError."""

    def rough_estimate(self) -> int:
        """The same when counting is too busy."""
        return 0

    def look(self, event: Mapping[str, Any]) -> None:  # noqa: B027 - chat upstreams report in the chunks
        """Raises UpstreamError when an event reports a failure."""

    def explain(self, error: UpstreamError) -> UpstreamError:
        """A failure in the light of what came before it."""
        return error

    async def cure(self, error: UpstreamError) -> bool:
        """Removes the cause of a failure; True when the request should be sent again at once. Asked only while nothing
        was shown; each cure may be tried once."""
        return False

    def final(self, error: UpstreamError) -> UpstreamError:
        """The error as the client gets it."""
        return error

    @property
    def after_tool_result(self) -> bool:
        """Whether the request ends with the result of a tool: an empty answer to that may be meant."""
        return False

    # -- the loop

    async def run(self) -> AsyncGenerator[list[Event], None]:
        """The answer in batches. Raises ProxyError."""
        await self.sign_in()
        sent, attempt, empty = 1, 0, 0
        while True:
            try:
                async with aclosing(self._attempt(sent)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except _Empty:
                decision = decide_empty(
                    attempt=empty,
                    shown=self._shown,
                    after_tool_result=self.after_tool_result,
                    chance=self._services.random(),
                )
                if isinstance(decision, GiveUp):
                    raise self.final(self._empty_answer()) from None
                empty += 1
            except UpstreamError as error:
                if COMMIT[self._shown].cures and await self.cure(error):
                    sent += 1
                    continue
                decision = decide(error, attempt=attempt, shown=self._shown, chance=self._services.random())
                self._log_failure(error, sent, decision)
                if isinstance(decision, GiveUp):
                    raise self.final(error) from None
                attempt += 1
            sent += 1
            await self._services.sleep(decision.after)

    async def _attempt(self, number: int) -> AsyncGenerator[list[Event], None]:
        if self._shown is Shown.NOTHING:
            self._stream = self._fresh_stream(started=self._stream.started)
        self._call.record(UpstreamStarted(number))
        upstream = self.contact(number)
        async with aclosing(upstream):
            first = asyncio.ensure_future(anext(upstream, None))
            try:
                if not self._stream.started:
                    yield await self._opening()
                batch = await first
            finally:
                await _settle(first)
            async for events in self._reduce(batch, upstream):
                yield events

    async def _opening(self) -> list[Event]:
        """`message_start`, with an estimate that is made while the upstream is being contacted."""
        try:
            self._input_tokens = await self.estimate()
        except BusyError:  # a number that the end of the stream corrects is no reason to fail
            self._input_tokens = self.rough_estimate()
        self._stream.input_tokens = self._input_tokens
        self._stream.start()
        stops = stops_of(self._call.request)
        self._stops = StopSequences(stops, input_tokens=self._input_tokens) if stops else None
        return self._stream.take()

    async def _reduce(
        self, batch: Batch | None, upstream: AsyncGenerator[Batch, None]
    ) -> AsyncGenerator[list[Event], None]:
        """Upstream batches to Messages batches; what a reader could see is held until the model has said something."""
        reducer = self.reducer(self._stream)
        held: list[Event] = []
        try:
            while batch is not None:
                out, failure = self._digest(batch, reducer)
                if reducer.produced or (reducer.finished and self.may_be_empty(reducer)):
                    self._shown = max(self._shown, Shown.THINKING if reducer.only_thinking else Shown.CONTENT)
                    out, held = held + out, []
                elif reducer.finished:
                    raise _Empty
                else:
                    held += [event for event in out if event["type"] not in _FRAMING]
                    out = [event for event in out if event["type"] in _FRAMING]
                out = self._stops.feed(out) if self._stops else out
                if out:
                    yield out
                if reducer.finished or (self._stops and self._stops.done):
                    return
                if failure is not None:
                    raise failure
                batch = await anext(upstream, None)
        except (BadAnswer, UpstreamError) as error:
            if rest := self._rest(reducer):
                yield rest
            raise self.explain(self._as_upstream(error)) from None

    def _digest(self, batch: Batch, reducer: Reducer) -> tuple[list[Event], BadAnswer | UpstreamError | None]:
        """The events of a batch up to its end or its first failure: how the upstream's data was cut into pieces must
        not decide what comes out before an error."""
        out: list[Event] = []
        try:
            for event in batch:
                self.look(event)
                out += reducer.feed(event)
                if reducer.finished:
                    break
        except (BadAnswer, UpstreamError) as error:
            return out, error
        return out, None

    def _rest(self, reducer: Reducer) -> list[Event]:
        """What must still be said before the stream breaks: nothing, as long as nothing was shown."""
        rest = reducer.interrupt()
        if self._shown is Shown.NOTHING:
            return []
        return self._stops.feed(rest) if self._stops else rest

    def _as_upstream(self, error: BadAnswer | UpstreamError) -> UpstreamError:
        if isinstance(error, UpstreamError):
            return error
        if isinstance(error, CallCut):
            return CallCutError(f"{self.label}: {error}", provider=self.label, usage=error.usage)
        kind = "transport" if isinstance(error, CutAnswer) else "bad_answer"
        return UpstreamError(f"{self.label}: {error}", kind=kind, provider=self.label, code=PROTOCOL_ERROR)

    def _fresh_stream(self, *, started: bool) -> MessageStream:
        stream = MessageStream(self._message_id, self._call.model, input_tokens=self._input_tokens)
        stream.started = started
        return stream

    # -- failures

    def may_be_empty(self, reducer: Reducer) -> bool:
        """Whether an answer without content is passed on. Clients check a model by asking for a single token: any
        answer will do; and one that was cut by a limit or a filter says so itself."""
        checking = self._call.request.get("max_tokens") in (0, 1)
        return not self.empty_is_failure or checking or reducer.incomplete

    def _empty_answer(self) -> UpstreamError:
        """The model finished without saying anything, every time it was asked."""
        message = f"{self.label}: the model completed without producing any output; repeating the request may help"
        return UpstreamError(message, kind="transient", provider=self.label)

    def _log_failure(self, error: UpstreamError, number: int, decision: Decision) -> None:
        again = decision.after if isinstance(decision, Again) else None
        self._services.log.write(
            "warn",
            self.label,
            f"{self.service}_upstream_request_failed",
            reqId=self._call.request_id,
            attempt=number,
            kind=error.kind,
            status=error.status,
            upstreamId=error.upstream_id,
            retryInS=again,
        )


def text_restorer(request: Mapping[str, Any]) -> partial[str] | None:
    """What makes an answer in strict form fit the caller's schema again; None when it fits already."""
    wanted = output_format(request) or {}
    schema = wanted.get("schema") if wanted.get("type") == "json_schema" and "strict" not in wanted else None
    return partial(restore_text, schema=schema) if has_optional(schema) else None


async def _settle(task: asyncio.Future[Any]) -> None:
    """Ends a task whose result nobody may have fetched."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
