"""One answer of P1: what the general turn over Responses does not know."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.config import Config
from proxy.core.invalid import InvalidRequest
from proxy.core.messages import Event, Fold
from proxy.core.responses_events import spent_window
from proxy.core.tools.read_tool import ReadOffsets
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.account.rate_limits import Allowances
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import SERVICE, WIRE
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.socket.frames import delta_frame, full_frame, http_body, shared_json
from proxy.providers.p1_codex.socket.selection import HTTP, Line, Sending
from proxy.providers.p1_codex.socket.turn_continuation import Conversation, Sockets
from proxy.providers.upstream.responses_turn import ResponsesTurn
from proxy.providers.upstream.transport import Batch, Outgoing, Transport

#: Ends after which the client repeats the answer as it was.
_REPEATED = frozenset({"end_turn", "tool_use"})


class CodexTurn(ResponsesTurn):
    """Runs one call. Use once."""

    label = LABEL
    service = SERVICE
    empty_is_failure = True

    def __init__(
        self,
        call: Call,
        prepared: Prepared,
        *,
        config: Config,
        services: Services,
        credentials: Credentials,
        http: Transport,
        sockets: Sockets,
        offsets: ReadOffsets,
        allowances: Allowances,
    ) -> None:
        signatures = config.section(CodexSettings).reasoning_signatures
        super().__init__(call, services, wire=WIRE, body=prepared.body, offsets=offsets, signatures=signatures)
        self.plain = prepared.plain
        self._allowances = allowances
        self._prepared = prepared
        self._config = config
        self._credentials = credentials
        self._credential: Credential | None = None
        self._http = http
        self._sockets = sockets
        self._renewed = False
        self._reconnected = False
        self._responded = False
        self._spent: float | None = None  # an allowance that is spent, in case the stream ends without a word

    async def opening(self) -> list[Event]:
        """`message_start` alone, for work that comes before the answer; `run` then goes on behind it."""
        return await self._opening()

    def run(self) -> AsyncGenerator[list[Event], None]:
        """The answer in batches. Raises ProxyError. Before the last batch is out, the next turn can go on from it."""
        codex = self._config.section(CodexSettings)
        enabled = codex.previous_response_id and codex.transport != HTTP
        if enabled and self._call.owner is not None:
            return self._run_in_conversation()
        self._begin(Conversation(self._sockets, None, self._body, enabled=enabled))
        return super().run()

    def _begin(self, conversation: Conversation) -> None:
        self._conversation = conversation
        mode = self._config.section(CodexSettings).transport
        self._line = Line(mode, self._sockets, self._http, conversation, self._services.log)

    async def _run_in_conversation(self) -> AsyncGenerator[list[Event], None]:
        self._begin(self._join())
        fold = Fold() if self._conversation.active else None
        try:
            async with aclosing(super().run()) as batches:
                async for batch in batches:
                    if fold is not None and not self._follow(fold, batch):
                        fold = None
                    yield batch
        finally:
            await self._conversation.end()

    def _join(self) -> Conversation:
        """What this turn has of its conversation: nothing when it only stands beside it."""
        owner, sockets = self._call.owner, self._sockets
        if owner is not None and sockets.continuations.is_aside(owner, self._body, sockets.now()):
            owner = None
        return Conversation(sockets, owner, self._body, enabled=True)

    def _follow(self, fold: Fold, batch: list[Event]) -> bool:
        """Collects the answer, and records it when it is whole; False when it is not worth following any more."""
        try:
            fold.add(batch)
            if fold.complete and fold.message["stop_reason"] in _REPEATED:
                self._conversation.record(p1_request.replayed(fold.message["content"], self._prepared.options))
        except (OverflowError, InvalidRequest):
            return False
        return not fold.complete

    async def sign_in(self) -> None:
        self._credential = await self._credentials.get()

    def encode(self) -> bytes:
        return shared_json(self._body)

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        if self._credential is None:
            raise RuntimeError("contacted before sign-in")
        self._responded, self._spent = False, None
        headers = p1_request.headers(self._config, lite=self._prepared.lite, session=self._call.session)
        signed = p1_request.with_credential(headers, self._credential)
        return self._line.stream(
            Sending(
                post=lambda: self._post(signed, number),
                url=self._config.section(CodexSettings).base_url,
                headers=p1_request.upgrade_headers(signed),
                frame=self._frame,
                request_id=self._call.request_id,
                attempt=number,
                renewed=self._renewed,
            )
        )

    def _post(self, headers: dict[str, str], number: int) -> Outgoing:
        body, request_id = http_body(self._payload), self._call.request_id
        return p1_request.post(self._config, headers, body, request_id=request_id, attempt=number)

    def _frame(self) -> bytes:
        plan = self._conversation.plan
        return delta_frame(self._body, plan.previous, plan.start) if plan.continues else full_frame(self._payload)

    def look(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "codex.rate_limits":
            self._spent = spent_window(event)
            self._allowances.heed_event(self._account, event)
            return
        if kind == "error" and isinstance(event.get("headers"), Mapping):
            self._allowances.heed_headers(self._account, event["headers"])
        super().look(event)
        self._responded = self._responded or (isinstance(kind, str) and kind.startswith("response."))

    def explain(self, error: UpstreamError) -> UpstreamError:
        """A cut stream after a spent allowance and nothing else was a refusal."""
        if error.kind != "transport" or self._responded or self._spent is None:
            return error
        message = "The usage limit has been reached"
        return UpstreamError(message, kind="usage_limit", retry_after=self._spent, provider=LABEL)

    async def cure(self, error: UpstreamError) -> bool:
        """A new token after a 401, the whole conversation where the earlier response is forgotten, a new socket for one
        that is too old."""
        if error.status == 401 and not self._renewed and self._credential is not None:
            self._renewed = True
            self._credential = await self._credentials.renew(self._credential.access)
            return True
        if self._conversation.plan.continues and is_forgotten(error):
            return True  # every attempt but the first sends all of it
        if error.code == SOCKET_TOO_OLD and not self._reconnected:
            self._reconnected = True
            return True
        return await super().cure(error)

    def final(self, error: UpstreamError) -> UpstreamError:
        return self._allowances.final(self._account, error)

    @property
    def _account(self) -> str | None:
        return self._credential.account_id if self._credential is not None else None


SOCKET_TOO_OLD = "websocket_connection_limit_reached"


def is_forgotten(error: UpstreamError) -> bool:
    """Whether the upstream no longer knows the response that was to be continued."""
    text = error.message.lower()
    return error.code == "previous_response_not_found" or ("previous response" in text and "not found" in text)
