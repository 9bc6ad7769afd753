"""P4 as the server sees it, and one answer of it over each of its three wires."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from proxy.core.convert.messages_to_messages import MessagesToMessages, without_foreign_thoughts
from proxy.core.messages import Event, MessageStream
from proxy.core.read_tool import ReadOffsets
from proxy.core.reducer import AnswerPolicy
from proxy.core.responses_events import failure_of
from proxy.core.routing import Catalog
from proxy.core.sse import dump_json
from proxy.core.tokens import rough_length
from proxy.errors import RequestError, UpstreamError
from proxy.providers import failures
from proxy.providers.base import Call, Services, Target
from proxy.providers.chat import HEADER_TIMEOUT_S, ChatTurn, chat_wire, estimate_words
from proxy.providers.p4_opencode import request as p4_request
from proxy.providers.p4_opencode.catalog import CATALOG, LABEL, WIRE_PATHS, Model, model_for
from proxy.providers.responses import ResponsesTurn, is_last
from proxy.providers.transport import Batch, HttpTransport, Outgoing, Transport, Wire
from proxy.providers.turn import Turn

SERVICE = "opencode"
upstream_error = partial(failures.upstream_error, LABEL)
final_error = partial(failures.final_error, LABEL, cure="check the API key: PROXY_P4_API_KEY")

WIRES: dict[str, Wire] = {
    "chat": chat_wire(LABEL, SERVICE, upstream_error),
    "messages": Wire(LABEL, SERVICE, lambda event: event.get("type") in ("message_stop", "error"), upstream_error),
    "responses": Wire(LABEL, SERVICE, is_last, upstream_error),
}


class _Chat(ChatTurn):
    """Chat completions. Ids of calls restart with every answer here, so calls get ids of our own."""

    label, service = LABEL, SERVICE
    mark = f"model-proxy:{LABEL}:v1"
    own_ids = True

    def __init__(self, call: Call, services: Services, row: Model, url: str, transport: Transport) -> None:
        body = p4_request.chat_body(call, row)
        super().__init__(call, services, wire=WIRES["chat"], transport=transport, url=url, body=body)
        self._row = row
        self._session = p4_request.session_of(call, services.new_id())
        self._relaxed = False

    async def sign_in(self) -> None:
        p4_request.key_of(self._services.config().p4_api_key)

    def headers(self) -> dict[str, str]:
        key = p4_request.key_of(self._services.config().p4_api_key)
        return p4_request.headers(self._row, key, self._session)

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

    def __init__(self, call: Call, services: Services, row: Model, url: str, transport: Transport) -> None:
        super().__init__(call, services)
        self._row = row
        self._url = url
        self._transport = transport
        self._body = p4_request.native_body(call, row)
        self._payload = dump_json(self._body).encode()
        self._session = p4_request.session_of(call, services.new_id())

    async def sign_in(self) -> None:
        p4_request.key_of(self._services.config().p4_api_key)

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        key = p4_request.key_of(self._services.config().p4_api_key)
        headers = p4_request.headers(self._row, key, self._session)
        return self._transport(outgoing(self._url, headers, self._payload, self._call, number))

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
        failure = failure_of(event, now=self._services.clock())
        if failure is not None:
            raise upstream_error(failure)

    def final(self, error: UpstreamError) -> UpstreamError:
        return final_error(error)


class _Responses(ResponsesTurn):
    """The Responses API, in its full form."""

    label, service = LABEL, SERVICE

    def __init__(
        self, call: Call, services: Services, row: Model, url: str, transport: Transport, offsets: ReadOffsets
    ) -> None:
        body = p4_request.responses_body(call, row, offsets)
        super().__init__(call, services, wire=WIRES["responses"], body=body, offsets=offsets, signatures=True)
        self._row = row
        self._url = url
        self._transport = transport
        self._session = p4_request.session_of(call, services.new_id())

    async def sign_in(self) -> None:
        p4_request.key_of(self._services.config().p4_api_key)

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        key = p4_request.key_of(self._services.config().p4_api_key)
        headers = p4_request.headers(self._row, key, self._session)
        return self._transport(outgoing(self._url, headers, self._payload, self._call, number))

    def final(self, error: UpstreamError) -> UpstreamError:
        return final_error(error)


def outgoing(url: str, headers: dict[str, str], body: bytes, call: Call, number: int) -> Outgoing:
    """One attempt."""
    return Outgoing(url, headers, body, HEADER_TIMEOUT_S, call.request_id, number)


class OpenCodeProvider:
    """The OpenCode Go subscription."""

    label = LABEL

    def __init__(self, services: Services) -> None:
        self._services = services
        self._offsets = ReadOffsets()
        self._transports = {
            name: HttpTransport(wire, services.http, services.log, services.clock).stream
            for name, wire in WIRES.items()
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
        url = self._services.config().p4_base_url + WIRE_PATHS[row.wire]
        build: dict[str, Callable[..., Turn]] = {
            "chat": _Chat,
            "messages": _Native,
            "responses": partial(_Responses, offsets=self._offsets),
        }
        return build[row.wire](call, self._services, row, url, self._transports[row.wire])

    def _row(self, model: str) -> Model:
        row = model_for(model)
        if row is None:
            raise RequestError(f"Unsupported OpenCode Go model: {model}", provider=LABEL, param="model")
        return row
