"""P1's own compaction around an ordinary turn: before a request for a summary the backend is asked for its encrypted
item, and a later request that begins with that summary is sent with the item instead.

Nothing depends on it. Whatever fails here, the client gets the summary it asked for, and a request that the backend
refuses with the item is sent again without.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from proxy.auth.store import Credential
from proxy.config import Config
from proxy.core.compaction import is_compaction
from proxy.core.identity import Owner
from proxy.core.messages import Event
from proxy.core.responses_events import incomplete_reason, responses_failure
from proxy.core.sse import encode_json
from proxy.errors import ProxyError
from proxy.providers.contract import Call, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.compaction.items import compaction_body, encrypted_content, native_history
from proxy.providers.p1_codex.compaction.store import Anchors, Dropped
from proxy.providers.p1_codex.failures import WIRE
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.turn import CodexTurn
from proxy.providers.p1_codex.unary import Buffered
from proxy.providers.upstream.transport import Outgoing, Transport

#: The client waits for its summary meanwhile: then it gets that alone.
LIMIT_S = 300.0
#: A summary is some pages; of a longer answer nothing is kept.
MAX_SUMMARY_CHARS = 4 * 1024 * 1024

#: Ends of an answer that leave nothing out. A client refuses a summary that calls tools.
_WHOLE = frozenset({"end_turn", "stop_sequence", "tool_use"})
_WHOLE_SUMMARY = _WHOLE - {"tool_use"}


class _Unusable(Exception):
    """The backend answered, but not with one encrypted item; the text is the reason for the log."""


@dataclass(slots=True)
class _Ending:
    """What is noted of an answer on its way to the client. `texts` is None when nobody needs them."""

    texts: list[str] | None = None
    size: int = 0
    stop: str | None = None
    over: bool = False

    def feed(self, events: Sequence[Event]) -> None:
        for event in events:
            kind = event["type"]
            if kind == "content_block_delta" and self.texts is not None and event["delta"]["type"] == "text_delta":
                self.size += len(event["delta"]["text"])
                if self.size <= MAX_SUMMARY_CHARS:
                    self.texts.append(event["delta"]["text"])
            elif kind == "message_delta":
                self.stop = event["delta"].get("stop_reason")
            elif kind == "message_stop":
                self.over = True


@dataclass(slots=True)
class _Plan:
    """What is at stake in one turn: the attempt that its answer confirms (`boundary`), or that it replays."""

    call: Call
    owner: Owner
    attempt: int
    boundary: bool
    settled: bool = False


class Compacting:
    """The states of this provider, and what is done with them. One object for all requests."""

    def __init__(self, services: Services, buffered: Buffered, transport: Transport) -> None:
        self._services = services
        self._buffered = buffered
        self._transport = transport
        self._anchors = Anchors()

    def run(
        self, call: Call, prepared: Prepared, turn: Callable[[Prepared], CodexTurn]
    ) -> AsyncGenerator[list[Event], None]:
        """The answer of `turn` to the call, in batches. Raises ProxyError as the turn does."""
        if call.owner is not None and self._services.config().section(CodexSettings).server_compaction:
            return self._run(call, call.owner, prepared, turn)
        if call.owner is not None:
            self.discard(call.owner, call.request_id, "off")
        return turn(prepared).run()

    async def _run(
        self, call: Call, owner: Owner, prepared: Prepared, turn: Callable[[Prepared], CodexTurn]
    ) -> AsyncGenerator[list[Event], None]:
        plan, prepared = self._plan(call, owner, prepared)
        running = turn(prepared)
        ending = _Ending([] if plan is not None and plan.boundary else None)
        try:
            if plan is not None and plan.boundary:
                yield await running.opening()  # the client need not wait in silence for what it knows nothing of
                plan.settled = not await self._compact(plan, prepared)
            async with aclosing(running.run()) as batches:
                async for batch in batches:
                    if plan is not None:
                        ending.feed(batch)
                        if ending.over:  # settled before the client knows: its next request may follow at once
                            self._settle(plan, ending, fell_back=running.fell_back)
                    yield batch
        finally:
            if plan is not None:
                self._settle(plan, ending, fell_back=running.fell_back)

    def discard(self, owner: Owner, request_id: str, reason: str) -> None:
        """Forgets what is known of an owner."""
        if self._anchors.discard(owner):
            self._log("info", "server_compaction_dropped", request_id, reason=reason)

    # -- before the turn

    def _plan(self, call: Call, owner: Owner, prepared: Prepared) -> tuple[_Plan | None, Prepared]:
        """What the turn is about, and the request that it sends."""
        if is_compaction(call.request):
            attempt = self._anchors.begin(owner, prepared.body["model"], self._services.clock())
            return _Plan(call, owner, attempt, boundary=True), prepared
        return self._replay(call, owner, prepared)

    def _replay(self, call: Call, owner: Owner, prepared: Prepared) -> tuple[_Plan | None, Prepared]:
        body = prepared.body
        found = self._anchors.replay(owner, body["model"], body["input"], self._services.clock())
        if isinstance(found, Dropped):
            self._log("info", "server_compaction_dropped", call.request_id, reason=found.reason)
        if found is None or isinstance(found, Dropped):
            return None, prepared
        native = replace(prepared, body={**body, "input": found.items}, plain=body)
        return _Plan(call, owner, found.attempt, boundary=False), native

    async def _compact(self, plan: _Plan, prepared: Prepared) -> bool:
        """Asks for the encrypted item and keeps it; whether it is kept."""
        call, started = plan.call, self._services.clock()
        body = compaction_body(prepared.body)
        items = len(body["input"])
        self._log("info", "server_compaction_triggered", call.request_id, model=body["model"], items=items)
        try:
            content = await self._ask(call, prepared, encode_json(body), self._services.config())
            history = native_history(prepared.body, content)
            reason = self._anchors.store(plan.owner, plan.attempt, history, self._services.clock())
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

    async def _ask(self, call: Call, prepared: Prepared, body: bytes, config: Config) -> str:
        """The content of the encrypted item. Raises ProxyError, _Unusable, TimeoutError."""
        headers = p1_request.headers(config, lite=prepared.lite, session=call.session)

        async def send(credential: Credential, number: int) -> str:
            signed = p1_request.with_credential(headers, credential)
            return await self._read(p1_request.post(config, signed, body, request_id=call.request_id, attempt=number))

        async with asyncio.timeout(LIMIT_S):
            return await self._buffered.ask(call.request_id, send)

    async def _read(self, outgoing: Outgoing) -> str:
        """One answer to its end."""
        found: list[str] = []
        completed = False
        async with aclosing(self._transport(outgoing)) as batches:
            async for batch in batches:
                for event in batch:
                    failure = responses_failure(event, now=self._services.clock())
                    if failure is not None:
                        raise WIRE.refusal(failure, None)
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

    def _settle(self, plan: _Plan, ending: _Ending, *, fell_back: bool) -> None:
        """Draws the conclusion from how the turn ended, once."""
        if plan.settled:
            return
        plan.settled = True
        whole = ending.over and ending.stop in (_WHOLE_SUMMARY if plan.boundary else _WHOLE)
        if plan.boundary:
            self._confirm(plan, "".join(ending.texts or ()), whole=whole and ending.size <= MAX_SUMMARY_CHARS)
        elif (fell_back or not whole) and self._anchors.abort(plan.owner, plan.attempt):
            reason = "refused" if fell_back else "answer_failed"
            self._log("info", "server_compaction_dropped", plan.call.request_id, reason=reason)

    def _confirm(self, plan: _Plan, answer: str, *, whole: bool) -> None:
        reason: str | None = "summary_failed"
        if whole:
            reason = self._anchors.activate(plan.owner, plan.attempt, answer, self._services.clock())
        if reason is not None:
            self._failed(plan, reason)

    def _failed(self, plan: _Plan, reason: str, **fields: Any) -> None:
        self._anchors.abort(plan.owner, plan.attempt)
        self._log("warn", "server_compaction_failed", plan.call.request_id, reason=reason, **fields)

    def _log(self, level: str, msg: str, request_id: str, **fields: Any) -> None:
        self._services.log.write(level, LABEL, msg, reqId=request_id, **fields)
