"""One answer of P1 as a turn of its conversation: it may continue an earlier response, and the next turn may continue
it."""

from __future__ import annotations

from contextlib import aclosing

from proxy.config import Config
from proxy.core.identity import Owner
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import Event, Fold
from proxy.providers.contract import Call
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.adapter import CodexAdapter, CodexResources
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.socket.selection import HTTP
from proxy.providers.p1_codex.socket.turn_continuation import TurnContinuation
from proxy.providers.upstream.attempts import AttemptRunner
from proxy.providers.upstream.event_reader import Batches

#: Stop reasons after which the client repeats the answer unchanged.
_REPEATED = frozenset({"end_turn", "tool_use"})


class CodexTurn:
    """Runs one call. Use once."""

    def __init__(self, call: Call, prepared: Prepared, config: Config, resources: CodexResources) -> None:
        self._call = call
        self._options = prepared.options
        self._sockets = resources.sockets
        codex = config.section(CodexSettings)
        self._may_continue = codex.previous_response_id and codex.transport != HTTP
        self._adapter = CodexAdapter(call, prepared, config, resources)
        self._runner = AttemptRunner(call, resources.signer.services, self._adapter)

    @property
    def fell_back(self) -> bool:
        """Whether the plain body had to be sent."""
        return self._adapter.wire.fell_back

    async def opening(self) -> list[Event]:
        """`message_start` alone, for work before the answer; `run` then continues from there."""
        return await self._runner.opening()

    def run(self) -> Batches:
        """Yields the answer in batches. Raises ProxyError. Before the last batch is out, the next turn can continue
        it."""
        if self._may_continue and self._call.owner is not None:
            return self._run_in_conversation(self._call.owner)
        self._adapter.continue_with(TurnContinuation(self._sockets, enabled=self._may_continue))
        return self._runner.run()

    async def _run_in_conversation(self, owner: Owner) -> Batches:
        sockets, body = self._sockets, self._adapter.body
        continuation = TurnContinuation(self._sockets, enabled=self._may_continue)
        if not sockets.continuations.is_aside(owner, body.members, sockets.now()):
            await continuation.reserve(owner, body)
        self._adapter.continue_with(continuation)
        fold = Fold() if continuation.active else None
        try:
            async with aclosing(self._runner.run()) as batches:
                async for batch in batches:
                    if fold is not None and not self._follow(continuation, fold, batch):
                        fold = None
                    yield batch
        finally:
            await continuation.end()

    def _follow(self, continuation: TurnContinuation, fold: Fold, batch: list[Event]) -> bool:
        """Collects the answer, and records it when it is whole; False when following it has become useless."""
        try:
            fold.add(batch)
            if fold.complete and fold.message["stop_reason"] in _REPEATED:
                continuation.record(p1_request.replayed(fold.message["content"], self._options))
        except (OverflowError, InvalidRequest):
            return False
        return not fold.complete
