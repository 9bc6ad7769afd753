"""P1's own compaction around an ordinary turn. Before a request for a summary the backend is asked for its encrypted
item. A later request that begins with that summary is sent with the item instead.

Nothing depends on it. When anything here fails, the client still gets its summary. A request that the backend refuses
with the item is sent again without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from proxy.config import Config
from proxy.core.effort import is_compaction
from proxy.core.identity import Owner
from proxy.core.messages import Event
from proxy.core.responses_events import incomplete_reason, responses_failure
from proxy.errors import ProxyError
from proxy.providers.contract import Call
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.compaction.items import compaction_body, encrypted_content, native_history
from proxy.providers.p1_codex.compaction.store import CompactionStore, Dropped
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.signed import Signer
from proxy.providers.p1_codex.socket.frames import SharedBody
from proxy.providers.p1_codex.turn import CodexTurn
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.transport import Transport, UpstreamRequest


@dataclass(frozen=True, slots=True)
class CompactionFlowLimits:
    """
    wait_s         how long the encrypted item may take, since the client waits for its summary meanwhile
    summary_chars  a summary is some pages; a longer answer is not kept
    """

    wait_s: float = 300.0
    summary_chars: int = 4 * 1024 * 1024


#: Stop reasons of a complete answer. A client refuses a summary that calls tools.
_WHOLE = frozenset({"end_turn", "stop_sequence", "tool_use"})
_WHOLE_SUMMARY = _WHOLE - {"tool_use"}


class _Unusable(Exception):
    """The backend answered, but not with one encrypted item; the text is the reason for the log."""


@dataclass(slots=True)
class _AnswerEnd:
    """The parts kept of an answer on its way to the client: its end, and its texts up to `limit` characters. The texts
    are None when they are not needed."""

    limit: int
    texts: list[str] | None = None
    size: int = 0
    stop: str | None = None
    over: bool = False

    def feed(self, events: Sequence[Event]) -> None:
        for event in events:
            kind = event["type"]
            if kind == "content_block_delta" and self.texts is not None and event["delta"]["type"] == "text_delta":
                self.size += len(event["delta"]["text"])
                if self.size <= self.limit:
                    self.texts.append(event["delta"]["text"])
            elif kind == "message_delta":
                self.stop = event["delta"].get("stop_reason")
            elif kind == "message_stop":
                self.over = True


@dataclass(slots=True)
class _CompactionTurn:
    """A turn of a compaction. Its answer confirms the compaction `attempt` (`boundary`), or its request contains the
    result of that compaction."""

    call: Call
    owner: Owner
    attempt: int
    boundary: bool
    settled: bool = False


class CompactionFlow:
    """Makes, replays and drops the compactions of all conversations. One object serves all requests."""

    def __init__(self, signer: Signer, transport: Transport) -> None:
        self._limits = signer.services.tuning.of(CompactionFlowLimits)
        self._services = signer.services
        self._signer = signer
        self._transport = transport
        self._store = CompactionStore()

    def run(self, call: Call, prepared: Prepared, turn: Callable[[Prepared], CodexTurn]) -> Batches:
        """Yields the answer of `turn` to the call, in batches. Raises ProxyError as the turn does."""
        if call.owner is None:
            return turn(prepared).run()
        if not self._services.config().section(CodexSettings).server_compaction:
            self.discard(call.owner, call.request_id, "off")
            return turn(prepared).run()
        plan, prepared = self._plan(call, call.owner, prepared)
        return turn(prepared).run() if plan is None else self._run(plan, prepared, turn(prepared))

    async def _run(self, plan: _CompactionTurn, prepared: Prepared, running: CodexTurn) -> Batches:
        ending = _AnswerEnd(self._limits.summary_chars, [] if plan.boundary else None)
        try:
            if plan.boundary:
                yield await running.opening()  # the client does not see the work that comes first
                plan.settled = not await self._compact(plan, prepared)
            async with aclosing(running.run()) as batches:
                async for batch in batches:
                    ending.feed(batch)
                    if ending.over:  # settled before the client knows: its next request may follow at once
                        self._settle(plan, ending, fell_back=running.fell_back)
                    yield batch
        finally:
            self._settle(plan, ending, fell_back=running.fell_back)

    def discard(self, owner: Owner, request_id: str, reason: str) -> None:
        """Forgets what is known of an owner."""
        if self._store.discard(owner):
            self._log("info", "server_compaction_dropped", request_id, reason=reason)

    # -- before the turn

    def _plan(self, call: Call, owner: Owner, prepared: Prepared) -> tuple[_CompactionTurn | None, Prepared]:
        """The compaction that the turn takes part in, if any, and the request that it sends."""
        if is_compaction(call.request):
            attempt = self._store.begin(owner, prepared.body["model"], self._services.clock())
            return _CompactionTurn(call, owner, attempt, boundary=True), prepared
        return self._replay(call, owner, prepared)

    def _replay(self, call: Call, owner: Owner, prepared: Prepared) -> tuple[_CompactionTurn | None, Prepared]:
        body = prepared.body
        found = self._store.replay(owner, body["model"], body["input"], self._services.clock())
        if isinstance(found, Dropped):
            self._log("info", "server_compaction_dropped", call.request_id, reason=found.reason)
        if found is None or isinstance(found, Dropped):
            return None, prepared
        native = replace(prepared, body={**body, "input": found.items}, plain=body)
        return _CompactionTurn(call, owner, found.attempt, boundary=False), native

    async def _compact(self, plan: _CompactionTurn, prepared: Prepared) -> bool:
        """Asks for the encrypted item; returns whether it was kept."""
        call, started = plan.call, self._services.clock()
        body = compaction_body(prepared.body)
        items = len(body["input"])
        self._log("info", "server_compaction_triggered", call.request_id, model=body["model"], items=items)
        try:
            content = await self._ask(call, prepared, SharedBody(body, large=call.large), self._services.config())
            history = native_history(prepared.body, content)
            reason = self._store.store(plan.owner, plan.attempt, history, self._services.clock())
        except _Unusable as error:
            reason = str(error)
        except TimeoutError:
            reason = "timeout"
        except ProxyError as error:
            reason = error.kind
        ms = round((self._services.clock() - started) * 1000)
        if reason is not None:
            self._failed(plan, reason, ms=ms)
            return False
        self._log("info", "server_compaction_completed", call.request_id, items=len(history), ms=ms)
        return True

    async def _ask(self, call: Call, prepared: Prepared, body: SharedBody, config: Config) -> str:
        """The content of the encrypted item. Raises ProxyError, _Unusable, TimeoutError."""
        headers = p1_request.headers(config, lite=prepared.lite, session=call.session)
        signed, codex = self._signer.request(call.request_id), config.section(CodexSettings)

        async def send(number: int) -> str:
            await signed.locate()
            return await self._read(signed.post(codex, headers, body.written, number, capture=call.capture))

        async with asyncio.timeout(self._limits.wait_s):
            await signed.credential.get()
            return await signed.attempts().ask(send)

    async def _read(self, request: UpstreamRequest) -> str:
        """Reads one answer to its end."""
        found: list[str] = []
        completed = False
        async with aclosing(self._transport(request)) as batches:
            async for batch in batches:
                for event in batch:
                    failure = responses_failure(event, now=self._services.clock())
                    if failure is not None:
                        raise PROFILE.refusal(failure, None)
                    content = encrypted_content(event)
                    found += [content] if content is not None else []
                    if len(found) > 1:
                        raise _Unusable("several_items")
                    ended = event.get("type") == "response.completed" and incomplete_reason(event) is None
                    completed = completed or ended
        if not completed:
            raise _Unusable("not_completed")
        if not found:
            raise _Unusable("no_item")
        return found[0]

    # -- after it

    def _settle(self, plan: _CompactionTurn, ending: _AnswerEnd, *, fell_back: bool) -> None:
        """Confirms or drops the compaction by how the turn ended, once."""
        if plan.settled:
            return
        plan.settled = True
        whole = ending.over and ending.stop in (_WHOLE_SUMMARY if plan.boundary else _WHOLE)
        if plan.boundary:
            self._confirm(plan, "".join(ending.texts or ()), whole=whole and ending.size <= self._limits.summary_chars)
        elif (fell_back or not whole) and self._store.abort(plan.owner, plan.attempt):
            reason = "refused" if fell_back else "answer_failed"
            self._log("info", "server_compaction_dropped", plan.call.request_id, reason=reason)

    def _confirm(self, plan: _CompactionTurn, answer: str, *, whole: bool) -> None:
        reason: str | None = "summary_failed"
        if whole:
            reason = self._store.confirm(plan.owner, plan.attempt, answer, self._services.clock())
        if reason is not None:
            self._failed(plan, reason)

    def _failed(self, plan: _CompactionTurn, reason: str, **fields: Any) -> None:
        self._store.abort(plan.owner, plan.attempt)
        self._log("warn", "server_compaction_failed", plan.call.request_id, reason=reason, **fields)

    def _log(self, level: str, msg: str, request_id: str, **fields: Any) -> None:
        self._services.log.write(level, LABEL, msg, reqId=request_id, **fields)
