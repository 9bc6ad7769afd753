"""P1 as an upstream: one request with its sign-in, its transport, and the meaning of its failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from proxy.config import Config
from proxy.core.responses_events import spent_window
from proxy.core.visible import Visible
from proxy.errors import UpstreamError
from proxy.off_loop import in_thread_if
from proxy.providers.contract import Call
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.account.rate_limits import RateLimits
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.signed import Signer
from proxy.providers.p1_codex.socket.exchange import Attempt, Upgrade
from proxy.providers.p1_codex.socket.frames import SharedBody
from proxy.providers.p1_codex.socket.manager import SocketManager
from proxy.providers.p1_codex.socket.selection import TransportSelection
from proxy.providers.p1_codex.socket.turn_continuation import TurnContinuation
from proxy.providers.upstream.adapter import RequestCredential
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.responses_wire import ResponsesWire
from proxy.providers.upstream.transport import Transport

SOCKET_TOO_OLD = "websocket_connection_limit_reached"


@dataclass(frozen=True, slots=True)
class CodexResources:
    """Resources that all turns share."""

    signer: Signer
    http: Transport
    sockets: SocketManager


class CodexEventNotes:
    """Side notes from the events of an attempt. A separate object, so that no wire refers back to its adapter.

    responded  whether the answer has begun
    spent      seconds until spent limits are back, in case the stream ends without a word; None when none was spent
    """

    def __init__(self, rate_limits: RateLimits, credential: RequestCredential) -> None:
        self._rate_limits = rate_limits
        self._credential = credential
        self.begin()

    def begin(self) -> None:
        """Resets the notes for another attempt."""
        self.responded = False
        self.spent: float | None = None

    def observe(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "codex.rate_limits":
            self.spent = spent_window(event)
            self._rate_limits.observe_event(self._credential.account_id, event)
        elif kind == "error":
            if isinstance(event.get("headers"), Mapping):
                self._rate_limits.observe_headers(self._credential.account_id, event["headers"])
        elif not self.responded:
            self.responded = isinstance(kind, str) and kind.startswith("response.")


class CodexAdapter:
    """One request to P1. `continue_with` comes before the first attempt."""

    profile = PROFILE

    def __init__(self, call: Call, prepared: Prepared, config: Config, resources: CodexResources) -> None:
        self._call = call
        self._prepared = prepared
        self._config = config
        self._codex = config.section(CodexSettings)
        self._resources = resources
        self._signed = resources.signer.request(call.request_id, call.timings)
        self._reconnected = False
        self._notes = CodexEventNotes(resources.signer.rate_limits, self._signed.credential)
        self.body = SharedBody(prepared.body, large=call.large)
        self.wire = ResponsesWire(
            call,
            resources.signer.services,
            PROFILE,
            self.body,
            offsets=prepared.options.offsets,
            signatures=prepared.options.label if prepared.signs else "",
            plain=prepared.plain,
            observe=self._notes.observe,
        )

    def continue_with(self, continuation: TurnContinuation) -> None:
        """Decides which earlier response the request continues."""
        self._continuation = continuation
        resources = self._resources
        self._transport = TransportSelection(self._codex.transport, resources.sockets, resources.http, continuation)

    async def sign_in(self) -> None:
        await self._signed.sign_in()

    def contact(self, number: int) -> Batches:
        self._notes.begin()
        headers = p1_request.headers(self._config, lite=self._prepared.lite, session=self._call.session)
        return self._transport.stream(
            Attempt(
                post=lambda: self._signed.post(
                    self._codex, headers, self.body.written, number, capture=self._call.capture
                ),
                upgrade=lambda: Upgrade(
                    self._signed.url(self._codex.base_url), p1_request.upgrade_headers(self._signed.headers(headers))
                ),
                frame=self._frame,
                request_id=self._call.request_id,
                number=number,
                renewed=self._signed.credential.renewed,
                log=self._resources.signer.services.log,
                capture=self._call.capture,
                timings=self._call.timings,
            )
        )

    async def _frame(self) -> bytes:
        plan = self._continuation.plan
        write = partial(self.body.frame, plan.previous, plan.start)
        return await in_thread_if(self.body.large, write)

    def contextualise(self, error: UpstreamError, visible: Visible) -> UpstreamError:
        """Treats a stream that was cut after an event about a spent limit, and nothing else, as refused."""
        spent = self._notes.spent
        if error.kind != "transport" or spent is None or self._notes.responded or self.wire.spoke:
            return error
        message = "The usage limit has been reached"
        return UpstreamError(message, kind="usage_limit", retry_after=spent, provider=LABEL)

    async def recover(self, error: UpstreamError) -> bool:
        """Renews the token after a 401, sends the whole conversation when the earlier response is forgotten, and
        replaces a socket that is too old."""
        if await self._signed.renew(error):
            return True
        if self._continuation.plan.continues and is_forgotten(error):
            return True  # every attempt but the first sends all of it
        if error.code == SOCKET_TOO_OLD and not self._reconnected:
            self._reconnected = True
            return True
        return False

    def client_error(self, error: UpstreamError) -> UpstreamError:
        return self._signed.client_error(error)


def is_forgotten(error: UpstreamError) -> bool:
    """Whether the upstream no longer knows the response that was to be continued."""
    text = error.message.lower()
    return error.code == "previous_response_not_found" or ("previous response" in text and "not found" in text)
