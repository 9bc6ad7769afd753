"""P4 as the server sees it, and one answer of it over each of its three wires."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from proxy.core.convert.messages_to_messages import MessagesToMessages, without_foreign_thoughts
from proxy.core.ingress import IngressRules
from proxy.core.messages import LAST_EVENTS, Event, MessageStream
from proxy.core.reducer import AnswerPolicy
from proxy.core.responses_events import is_last
from proxy.core.routing import Catalog
from proxy.core.sse import dump_json
from proxy.core.tokens.counting import rough_length
from proxy.core.tools.read_tool import ReadOffsets
from proxy.core.upstream_failures import failure_of
from proxy.errors import RequestError, UpstreamError
from proxy.providers.contract import Call, Services, Target
from proxy.providers.p4_opencode import request as p4_request
from proxy.providers.p4_opencode.catalog import CATALOG, LABEL, WIRE_PATHS, Model, model_for
from proxy.providers.upstream import failures
from proxy.providers.upstream.attempts import Turn
from proxy.providers.upstream.chat_turn import HEADER_TIMEOUT_S, ChatTurn, chat_wire, estimate_words
from proxy.providers.upstream.responses_turn import ResponsesTurn
from proxy.providers.upstream.transport import Batch, HttpTransport, Outgoing, Transport, Wire

SERVICE = "opencode"
upstream_error = partial(failures.upstream_error, LABEL)
final_error = partial(failures.final_error, LABEL, cure="check the API key: PROXY_P4_API_KEY")

WIRES: dict[str, Wire] = {
    "chat": chat_wire(LABEL, SERVICE, upstream_error),
    "messages": Wire(LABEL, SERVICE, lambda event: event.get("type") in LAST_EVENTS, upstream_error),
    "responses": Wire(LABEL, SERVICE, is_last, upstream_error),
}


@dataclass(frozen=True, slots=True)
class _Gateway:
    """The way to the gateway for one request: the same session on every attempt, the key as it is now."""

    services: Services
    row: Model
    transport: Transport
    session: str

    @property
    def url(self) -> str:
        return self.services.config().p4_base_url + WIRE_PATHS[self.row.wire]

    def headers(self) -> dict[str, str]:
        """All headers. Raises SignInError when there is no key."""
        key = p4_request.key_of(self.services.config().p4_api_key)
        return p4_request.headers(self.row, key, self.session)

    def send(self, body: bytes, call: Call, number: int) -> AsyncGenerator[Batch, None]:
        """One attempt."""
        outgoing = Outgoing(self.url, self.headers(), body, HEADER_TIMEOUT_S, call.request_id, number)
        return self.transport(outgoing)


class _Chat(ChatTurn):
    """Chat completions. Ids of calls restart with every answer here, so calls get ids of our own."""

    label, service = LABEL, SERVICE
    mark = f"model-proxy:{LABEL}:v1"
    own_ids = True

    def __init__(self, call: Call, gateway: _Gateway) -> None:
        super().__init__(
            call,
            gateway.services,
            wire=WIRES["chat"],
            transport=gateway.transport,
            url=gateway.url,
            body=p4_request.chat_body(call, gateway.row),
        )
        self._gateway = gateway
        self._relaxed = False

    async def sign_in(self) -> None:
        self._gateway.headers()

    def headers(self) -> dict[str, str]:
        return self._gateway.headers()

    async def cure(self, error: UpstreamError) -> bool:
        """Some models bear no forced choice while they think."""
        text = error.message.lower()
        if error.status != 400 or self._relaxed or "tool_choice" not in text or "thinking" not in text:
            return False
        self._relaxed = True
        return self.body.pop("tool_choice", None) is not None

    def final(self, error: UpstreamError) -> UpstreamError:
        return final_error(error)


class _Native(Turn):
    """Messages, spoken natively."""

    label, service = LABEL, SERVICE

    def __init__(self, call: Call, gateway: _Gateway) -> None:
        super().__init__(call, gateway.services)
        self._gateway = gateway
        self._body = p4_request.native_body(call, gateway.row)
        self._payload = dump_json(self._body).encode()

    async def sign_in(self) -> None:
        self._gateway.headers()

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        return self._gateway.send(self._payload, self._call, number)

    def reducer(self, stream: MessageStream) -> MessagesToMessages:
        return MessagesToMessages(stream, AnswerPolicy(self._call.request))

    async def estimate(self) -> int:
        return await estimate_words(self._services, self._call)

    def rough_estimate(self) -> int:
        return rough_length(self._payload.decode())

    async def cure(self, error: UpstreamError) -> bool:
        """No thoughts of other models where their signatures are refused."""
        if error.status != 400 or "signature" not in error.message.lower():
            return False
        body = without_foreign_thoughts(self._body)
        if body == self._body:
            return False
        self._body, self._payload = body, dump_json(body).encode()
        return True

    def look(self, event: Mapping[str, Any]) -> None:
        if event.get("type") != "error":
            return
        raise upstream_error(failure_of(event, now=self._services.clock()))

    def final(self, error: UpstreamError) -> UpstreamError:
        return final_error(error)


class _Responses(ResponsesTurn):
    """The Responses API, in its full form."""

    label, service = LABEL, SERVICE
    unnamed_status = 502

    def __init__(self, call: Call, gateway: _Gateway, offsets: ReadOffsets) -> None:
        body = p4_request.responses_body(call, gateway.row, offsets)
        super().__init__(call, gateway.services, wire=WIRES["responses"], body=body, offsets=offsets, signatures=True)
        self._gateway = gateway

    async def sign_in(self) -> None:
        self._gateway.headers()

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        return self._gateway.send(self._payload, self._call, number)

    def final(self, error: UpstreamError) -> UpstreamError:
        return final_error(error)


class OpenCodeProvider:
    """The OpenCode Go subscription."""

    label = LABEL
    ingress = IngressRules()

    def __init__(self, services: Services) -> None:
        self._services = services
        self._offsets = ReadOffsets()
        http = services.client_for(services.config().p4_base_url)
        self._transports = {
            name: HttpTransport(wire, http, services.log, services.clock).stream for name, wire in WIRES.items()
        }

    def catalog(self) -> Catalog:
        return CATALOG

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        row = self._row(model)
        return Target(row.id, effort=p4_request.effort_of(row, request))

    async def count_tokens(self, call: Call) -> int:
        return await estimate_words(self._services, call)

    async def stream(self, call: Call) -> AsyncGenerator[list[Event], None]:
        async with aclosing(self._turn(call).run()) as batches:
            async for batch in batches:
                yield batch

    async def close(self) -> None:
        return None

    def _turn(self, call: Call) -> Turn:
        row = self._row(call.model)
        session = p4_request.session_of(call, str(uuid.UUID(self._services.new_id())))
        gateway = _Gateway(self._services, row, self._transports[row.wire], session)
        if row.wire == "responses":
            return _Responses(call, gateway, self._offsets)
        return _Native(call, gateway) if row.wire == "messages" else _Chat(call, gateway)

    def _row(self, model: str) -> Model:
        row = model_for(model)
        if row is None:
            raise RequestError(f"Unsupported OpenCode Go model: {model}", provider=LABEL, param="model")
        return row
