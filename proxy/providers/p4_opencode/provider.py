"""P4 as the server sees it, and as an upstream over each of its three wires."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from proxy.core.convert.whole_answers import response_events
from proxy.core.ingress import IngressRules
from proxy.core.reducer import AnswerRules
from proxy.core.responses_events import is_last
from proxy.core.tokens.counting import Length, count_responses
from proxy.core.tools.read_tool import OffsetStore, ReadOffsets
from proxy.core.visible import Visible
from proxy.errors import RequestError, UpstreamError
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.base import BaseProvider
from proxy.providers.contract import Call, Services, Target
from proxy.providers.p4_opencode import request as p4_request
from proxy.providers.p4_opencode.account import usage_windows
from proxy.providers.p4_opencode.catalog import LABEL, WIRE_PATHS, OpenCodeModel, model_for, offered_model
from proxy.providers.p4_opencode.entry import OPENCODE
from proxy.providers.p4_opencode.request import ingress_of
from proxy.providers.p4_opencode.settings import OpenCodeSettings
from proxy.providers.upstream import failures
from proxy.providers.upstream.adapter import RequestBody, translated
from proxy.providers.upstream.attempts import AttemptRunner
from proxy.providers.upstream.chat_wire import BodyFallback, ChatWire, chat_profile, heuristic_estimate
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.messages_wire import MessagesWire, messages_profile
from proxy.providers.upstream.model_list import ListQuestion
from proxy.providers.upstream.responses_wire import ResponsesWire
from proxy.providers.upstream.transport import (
    HttpTimers,
    HttpTransport,
    Transport,
    UpstreamProfile,
    UpstreamRequest,
)

SERVICE = "opencode"
upstream_error = partial(failures.upstream_error, LABEL)
client_error = partial(failures.client_error, sign_in_hint="check the API key: PROXY_P4_API_KEY")

PROFILES: dict[str, UpstreamProfile] = {
    "chat": chat_profile(LABEL, SERVICE, upstream_error),
    "messages": messages_profile(LABEL, SERVICE, upstream_error),
    "responses": UpstreamProfile(LABEL, SERVICE, is_last, upstream_error, whole=response_events),
}

#: An error in a stream without a known name is not repeated.
RULES = AnswerRules(unnamed=("upstream", 502))

#: Some models accept no forced choice while they think.
FALLBACKS = (
    BodyFallback(
        lambda text: "tool_choice" in text and "thinking" in text,
        lambda body: {name: body[name] for name in body if name != "tool_choice"} if "tool_choice" in body else None,
    ),
)


def _chat(call: Call, services: Services, body: dict[str, Any], _offsets: ReadOffsets) -> ChatWire:
    """Chat with our own call ids, since the gateway's restart with every answer."""
    return ChatWire(call, services, PROFILES["chat"], body, own_ids=True, fallbacks=FALLBACKS)


def _messages(call: Call, services: Services, body: dict[str, Any], _offsets: ReadOffsets) -> MessagesWire:
    return MessagesWire(call, services, PROFILES["messages"], body)


def _responses(call: Call, services: Services, body: dict[str, Any], offsets: ReadOffsets) -> ResponsesWire:
    profile, shared = PROFILES["responses"], RequestBody(body, large=call.large)
    signs_as = services.signs_as(LABEL)
    return ResponsesWire(call, services, profile, shared, offsets=offsets, signatures=signs_as, rules=RULES)


#: wire of a model -> makes a request on it
WIRES: dict[str, Callable[[Call, Services, dict[str, Any], ReadOffsets], ChatWire | MessagesWire | ResponsesWire]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
}


class OpenCodeAdapter:
    """One request to the gateway: the same session on every attempt, with the current key."""

    def __init__(
        self,
        call: Call,
        services: Services,
        row: OpenCodeModel,
        body: dict[str, Any],
        *,
        transport: Transport,
        offsets: ReadOffsets,
    ) -> None:
        self._call = call
        self._services = services
        self._row = row
        self._transport = transport
        self._session = p4_request.session_of(call, str(uuid.UUID(services.new_id())))
        self.profile = PROFILES[row.wire]
        self.wire = WIRES[row.wire](call, services, body, offsets)

    async def sign_in(self) -> None:
        self._headers()

    def contact(self, number: int) -> Batches:
        url = self._services.config().section(OpenCodeSettings).base_url + WIRE_PATHS[self._row.wire]
        call, payload = self._call, self.wire.body.written
        return self._transport(
            UpstreamRequest(url, self._headers(), payload, call.request_id, number, call.capture, call.timings)
        )

    def _headers(self) -> dict[str, str]:
        """All headers. Raises SignInError when there is no key."""
        key = p4_request.key_of(self._services.config().section(OpenCodeSettings).api_key)
        return p4_request.headers(self._row, key, self._session)

    def contextualise(self, error: UpstreamError, visible: Visible) -> UpstreamError:
        return error

    async def recover(self, error: UpstreamError) -> bool:
        return False

    def client_error(self, error: UpstreamError) -> UpstreamError:
        return client_error(error)


class OpenCodeProvider(BaseProvider[OpenCodeSettings]):
    """The OpenCode Go subscription."""

    entry, section = OPENCODE, OpenCodeSettings

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._offsets = OffsetStore()
        http, timers = services.client_for(self._settings.base_url), services.tuning.of(HttpTimers)
        self._transports = {
            wire: HttpTransport(profile, http, services.log, services.clock, timers=timers).stream
            for wire, profile in PROFILES.items()
        }

    def ingress(self, model: str) -> IngressRules:
        return ingress_of(self._known(model))

    def hosted_tools(self, model: str) -> frozenset[str]:
        return frozenset({"web_search"} if self._row(model).wire == "responses" else ())

    def signed_in(self) -> bool:
        return bool(self._settings.api_key)

    def reports_cached(self, model: str) -> bool:
        """Whether the wire is another than chat, whose many services may leave cached tokens out."""
        row = self._known(model)
        return row is not None and row.wire != "chat"

    def cache_owner(self) -> int:
        return hash(self._settings.api_key)

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        row = self._row(model)
        blind = not row.sees and row.wire != "responses"
        effort = p4_request.effort_of(row, request)
        return Target(row.id, effort=effort, uploads_noted=blind, blind="anywhere" if blind else "")

    async def count_tokens(self, call: Call) -> int:
        row = self._row(call.model)
        if row.wire != "responses":
            return await heuristic_estimate(self._services, call, native=row.wire == "messages")
        offsets, signs_as = self._offsets.of(call.owner, call.request), self._services.signs_as(LABEL)

        def work(length: Length) -> int:
            return count_responses(p4_request.responses_body(call, row, offsets, signs_as), length)

        return await self._services.tokenizer.estimate(work, size=call.size)

    def stream(self, call: Call) -> Batches:
        row = self._row(call.model)
        offsets = self._offsets.of(call.owner, call.request)

        def ask(body: dict[str, Any]) -> Batches:
            transport = self._transports[row.wire]
            adapter = OpenCodeAdapter(call, self._services, row, body, transport=transport, offsets=offsets)
            return AttemptRunner(call, self._services, adapter).run()

        return translated(call, lambda: p4_request.body_of(call, row, offsets, self._services.signs_as(LABEL)), ask)

    async def ask_allowance(self) -> UsageReport:
        settings = self._settings
        http = self._services.client_for(settings.base_url)
        return await usage_windows.ask(settings.base_url, settings.api_key, http, self._services.clock)

    async def _model_question(self) -> ListQuestion:
        settings = self._settings
        key = p4_request.key_of(settings.api_key)
        headers = {"Authorization": f"Bearer {key.reveal()}", "User-Agent": usage_windows.USER_AGENT}
        return ListQuestion(f"{settings.base_url.rstrip('/')}/models", headers, offered_model)

    def _known(self, model: str) -> OpenCodeModel | None:
        """The row of a name that one of the accounts has: which of them is asked is not the row's matter."""
        return model_for(model, self._settings.models, self._services.models.of_label(LABEL))

    def _row(self, model: str) -> OpenCodeModel:
        row = self._known(model)
        if row is None:
            raise RequestError(f"Unsupported OpenCode Go model: {model}", provider=LABEL, param="model")
        return row
