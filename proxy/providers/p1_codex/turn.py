"""One answer of P1, over as many attempts as it takes.

Until the model has said something, nothing that a reader could see is passed on, so an attempt can be repeated
without a trace. Afterwards a failure ends the answer; only a stream that merely thought may start over once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.config import Config
from proxy.core.convert.messages_to_responses import output_format
from proxy.core.convert.responses_to_messages import ResponsesToMessages
from proxy.core.lifecycle import UpstreamStarted
from proxy.core.messages import Event, MessageStream
from proxy.core.read_tool import ReadOffsets
from proxy.core.reducer import AnswerPolicy, BadAnswer
from proxy.core.responses_events import failure_of, spent_window
from proxy.core.schema import has_optional, restore_text
from proxy.core.sse import dump_json
from proxy.core.stops import StopSequences, stops_of
from proxy.core.tokens import count_responses, rough_length
from proxy.errors import BusyError, UpstreamError
from proxy.providers.base import Call, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import empty_answer, final_error, is_foreign_reasoning, upstream_error
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.transport import Batch, Outgoing, Transport, with_credential
from proxy.providers.retry import Again, Decision, GiveUp, Shown, decide, decide_empty

#: Never a failure, and by far the most frequent: not looked at twice.
_DELTAS = frozenset(
    {
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
    }
)
_FRAMING = frozenset({"message_start", "ping"})


class _Empty(Exception):
    """A successful answer without content."""


class Turn:
    """Runs one call. Use once."""

    def __init__(
        self,
        call: Call,
        prepared: Prepared,
        *,
        config: Config,
        services: Services,
        credentials: Credentials,
        transport: Transport,
        offsets: ReadOffsets,
    ) -> None:
        self._call = call
        self._prepared = prepared
        self._config = config
        self._services = services
        self._credentials = credentials
        self._transport = transport
        self._offsets = offsets
        self._message_id = f"msg_{services.new_id()}"
        self._input_tokens = 0
        self._shown = Shown.NOTHING
        self._renewed = False
        self._stripped = False
        self._body = prepared.body
        self._payload = dump_json(prepared.body).encode()
        self._stream = self._fresh_stream(started=False)
        self._stops: StopSequences | None = None

    async def run(self) -> AsyncGenerator[list[Event], None]:
        """The answer in batches. Raises ProxyError."""
        credential = await self._credentials.get()
        sent, attempt, empty = 1, 0, 0
        while True:
            try:
                async with aclosing(self._attempt(credential, sent)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except _Empty:
                decision = self._about_empty(empty)
                if isinstance(decision, GiveUp):
                    raise final_error(empty_answer()) from None
                empty += 1
            except UpstreamError as error:
                cured = await self._cure(error, credential)
                if cured is not None:
                    credential, sent = cured, sent + 1
                    continue
                decision = decide(error, attempt=attempt, shown=self._shown, chance=self._services.random())
                self._log_failure(error, sent, decision)
                if isinstance(decision, GiveUp):
                    raise final_error(error) from None
                attempt += 1
            sent += 1
            await self._services.sleep(decision.after)

    # -- one attempt

    async def _attempt(self, credential: Credential, number: int) -> AsyncGenerator[list[Event], None]:
        if self._shown is Shown.NOTHING:
            self._stream = self._fresh_stream(started=self._stream.started)
        self._call.record(UpstreamStarted(number))
        upstream = self._transport(self._outgoing(credential, number))
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
            self._input_tokens = await self._services.tokenizer.run(
                partial(count_responses, self._body), size=len(self._payload)
            )
        except BusyError:  # a number that the end of the stream corrects is no reason to fail
            self._input_tokens = count_responses(self._body, rough_length)
        self._stream.input_tokens = self._input_tokens
        self._stream.start()
        stops = stops_of(self._call.request)
        self._stops = StopSequences(stops, input_tokens=self._input_tokens) if stops else None
        return self._stream.take()

    async def _reduce(
        self, batch: Batch | None, upstream: AsyncGenerator[Batch, None]
    ) -> AsyncGenerator[list[Event], None]:
        """Upstream batches to Messages batches; what a reader could see is held until the model has said something."""
        reducer = ResponsesToMessages(self._stream, self._policy())
        watch = _Watch(self._services.clock)
        held: list[Event] = []
        try:
            while batch is not None:
                out, failure = _digest(batch, reducer, watch)
                if reducer.produced or (reducer.finished and self._may_be_empty):
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
        except BadAnswer as error:
            if rest := self._rest(reducer):
                yield rest
            raise UpstreamError(f"{LABEL}: {error}", kind="bad_answer", provider=LABEL) from None
        except UpstreamError as error:
            if rest := self._rest(reducer):
                yield rest
            raise watch.explain(error) from None

    def _rest(self, reducer: ResponsesToMessages) -> list[Event]:
        """What must still be said before the stream breaks: nothing, as long as nothing was shown."""
        rest = reducer.interrupt()
        if self._shown is Shown.NOTHING:
            return []
        return self._stops.feed(rest) if self._stops else rest

    # -- parts

    def _fresh_stream(self, *, started: bool) -> MessageStream:
        stream = MessageStream(self._message_id, self._call.model, input_tokens=self._input_tokens)
        stream.started = started
        return stream

    def _policy(self) -> AnswerPolicy:
        wanted = output_format(self._call.request) or {}
        schema = wanted.get("schema") if wanted.get("type") == "json_schema" else None
        return AnswerPolicy(
            self._call.request,
            offsets=self._offsets,
            signatures=self._config.p1_reasoning_signatures,
            restore=partial(restore_text, schema=schema) if has_optional(schema) else None,
        )

    def _outgoing(self, credential: Credential, number: int) -> Outgoing:
        headers = p1_request.headers(self._config, lite=self._prepared.lite, session=self._call.session)
        return Outgoing(
            url=self._config.p1_base_url,
            headers=with_credential(headers, credential.access, credential.account_id),
            body=self._payload,
            header_timeout_s=self._config.p1_header_timeout_ms / 1000,
            request_id=self._call.request_id,
            attempt=number,
        )

    # -- failures

    @property
    def _may_be_empty(self) -> bool:
        """Clients check a model by asking for a single token: any answer will do."""
        return self._call.request.get("max_tokens") in (0, 1)

    def _about_empty(self, attempt: int) -> Decision:
        if self._shown is not Shown.NOTHING:
            return GiveUp()
        items = self._body["input"]
        after_tool = bool(items) and items[-1].get("type") == "function_call_output"
        return decide_empty(attempt=attempt, after_tool_result=after_tool, chance=self._services.random())

    async def _cure(self, error: UpstreamError, credential: Credential) -> Credential | None:
        """The credential for an immediate second attempt, when there is a cure that was not tried yet."""
        if self._shown is not Shown.NOTHING:
            return None
        if error.status == 401 and not self._renewed:
            self._renewed = True
            return await self._credentials.renew(credential.access)
        if not self._stripped and is_foreign_reasoning(error):
            self._stripped = True
            kept = [item for item in self._body["input"] if item.get("type") != "reasoning"]
            if len(kept) < len(self._body["input"]):
                self._body = {**self._body, "input": kept}
                self._payload = dump_json(self._body).encode()
                return credential
        return None

    def _log_failure(self, error: UpstreamError, number: int, decision: Decision) -> None:
        again = decision.after if isinstance(decision, Again) else None
        self._services.log.write(
            "warn",
            LABEL,
            "codex_upstream_request_failed",
            reqId=self._call.request_id,
            attempt=number,
            kind=error.kind,
            status=error.status,
            upstreamId=error.upstream_id,
            retryInS=again,
        )


def _digest(
    batch: Batch, reducer: ResponsesToMessages, watch: _Watch
) -> tuple[list[Event], BadAnswer | UpstreamError | None]:
    """The events of a batch up to its end or its first failure: how the upstream's data was cut into pieces must not
    decide what comes out before an error."""
    out: list[Event] = []
    try:
        for event in batch:
            watch.look(event)
            out += reducer.feed(event)
            if reducer.finished:
                break
    except (BadAnswer, UpstreamError) as error:
        return out, error
    return out, None


async def _settle(task: asyncio.Future[Any]) -> None:
    """Ends a task whose result nobody may have fetched."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


class _Watch:
    """Looks at events for failures, and remembers a spent allowance in case the stream ends without a word."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._responded = False
        self._spent: float | None = None

    def look(self, event: dict[str, Any]) -> None:
        """Raises UpstreamError when the event reports a failure."""
        kind = event.get("type")
        if kind in _DELTAS:
            return
        if kind == "codex.rate_limits":
            self._spent = spent_window(event)
            return
        failure = failure_of(event, now=self._clock())
        if failure is not None:
            raise upstream_error(failure)
        self._responded = self._responded or (isinstance(kind, str) and kind.startswith("response."))

    def explain(self, error: UpstreamError) -> UpstreamError:
        """A cut stream after a spent allowance and nothing else was a refusal."""
        if error.kind != "transport" or self._responded or self._spent is None:
            return error
        return UpstreamError(
            "The usage limit has been reached", kind="usage_limit", retry_after=self._spent, provider=LABEL
        )
