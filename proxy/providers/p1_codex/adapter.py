"""P1 as an upstream: one request with its sign-in, its transport, and what its failures mean."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from proxy.auth.refresh import Credentials
from proxy.config import Config
from proxy.core.responses_events import spent_window
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.account.rate_limits import RateLimits
from proxy.providers.p1_codex.account.workspace import Workspace, Workspaces
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.socket.exchange import Attempt
from proxy.providers.p1_codex.socket.frames import SharedBody
from proxy.providers.p1_codex.socket.manager import SocketManager
from proxy.providers.p1_codex.socket.selection import TransportSelection
from proxy.providers.p1_codex.socket.turn_continuation import TurnContinuation
from proxy.providers.upstream.credential import RequestCredential
from proxy.providers.upstream.responses_wire import ResponsesWire
from proxy.providers.upstream.transport import Batch, Transport, UpstreamRequest

SOCKET_TOO_OLD = "websocket_connection_limit_reached"


@dataclass(frozen=True, slots=True)
class CodexResources:
    """What all requests to P1 share."""

    services: Services
    credentials: Credentials
    rate_limits: RateLimits
    http: Transport
    sockets: SocketManager
    workspaces: Workspaces


class CodexEventNotes:
    """What the events of an attempt tell on the side. An object of its own, so that no wire refers back to its adapter.

    responded  whether the answer has begun
    spent      seconds until spent limits are back, in case the stream ends without a word; None where none was spent
    """

    def __init__(self, rate_limits: RateLimits, credential: RequestCredential) -> None:
        self._rate_limits = rate_limits
        self._credential = credential
        self.begin()

    def begin(self) -> None:
        """Another attempt."""
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
        self._credential = RequestCredential(resources.credentials)
        self._workspace = Workspace()
        self._reconnected = False
        self._notes = CodexEventNotes(resources.rate_limits, self._credential)
        self.body = SharedBody(prepared.body, large=call.large)
        self.wire = ResponsesWire(
            call,
            resources.services,
            PROFILE,
            self.body,
            offsets=prepared.options.offsets,
            signatures=prepared.options.label if prepared.signs else "",
            plain=prepared.plain,
            observe=self._notes.observe,
        )

    def continue_with(self, continuation: TurnContinuation) -> None:
        """Decides from what the request goes on."""
        self._continuation = continuation
        resources = self._resources
        self._transport = TransportSelection(self._codex.transport, resources.sockets, resources.http, continuation)

    async def sign_in(self) -> None:
        self._workspace = await self._resources.workspaces.of(await self._credential.get())

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        self._notes.begin()
        headers = p1_request.headers(self._config, lite=self._prepared.lite, session=self._call.session)
        signed = self._workspace.headers(p1_request.with_credential(headers, self._credential.current))
        return self._transport.stream(
            Attempt(
                post=lambda: self._post(signed, number),
                url=self._url,
                headers=p1_request.upgrade_headers(signed),
                frame=self._frame,
                request_id=self._call.request_id,
                number=number,
                renewed=self._credential.renewed,
                log=self._resources.services.log,
                capture=self._call.capture,
                timings=self._call.timings,
            )
        )

    def _post(self, headers: dict[str, str], number: int) -> UpstreamRequest:
        call, body = self._call, self.body.written
        return p1_request.post(
            self._config,
            headers,
            body,
            request_id=call.request_id,
            attempt=number,
            url=self._url,
            capture=call.capture,
            timings=call.timings,
        )

    @property
    def _url(self) -> str:
        return self._workspace.url(self._codex.base_url)

    async def _frame(self) -> bytes:
        plan = self._continuation.plan
        write = partial(self.body.frame, plan.previous, plan.start)
        return await asyncio.to_thread(write) if self.body.large else write()

    def contextualise(self, error: UpstreamError) -> UpstreamError:
        """A stream that was cut after an event about a spent limit, and nothing else, was refused."""
        spent = self._notes.spent
        if error.kind != "transport" or self._notes.responded or spent is None:
            return error
        message = "The usage limit has been reached"
        return UpstreamError(message, kind="usage_limit", retry_after=spent, provider=LABEL)

    async def recover(self, error: UpstreamError) -> bool:
        """A new token after a 401, the whole conversation where the earlier response is forgotten, a new socket for one
        that is too old."""
        if error.status == 401 and await self._credential.renew():
            return True
        if self._continuation.plan.continues and is_forgotten(error):
            return True  # every attempt but the first sends all of it
        if error.code == SOCKET_TOO_OLD and not self._reconnected:
            self._reconnected = True
            return True
        return False

    def client_error(self, error: UpstreamError) -> UpstreamError:
        return self._resources.rate_limits.client_error(self._credential.account_id, error)


def is_forgotten(error: UpstreamError) -> bool:
    """Whether the upstream no longer knows the response that was to be continued."""
    text = error.message.lower()
    return error.code == "previous_response_not_found" or ("previous response" in text and "not found" in text)
