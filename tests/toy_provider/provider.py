"""The toy provider: chat completions with a bearer token."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from proxy.providers.upstream.chat_turn import ChatTurn, chat_wire, estimate_words

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.core.convert.messages_to_chat import ChatDialect, ChatOptions, messages_to_chat
from proxy.core.ingress import IngressRules
from proxy.core.messages import Event
from proxy.core.routing import Catalog
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services, Target
from proxy.providers.upstream import failures
from proxy.providers.upstream.transport import HttpTransport
from toy_provider.account import toy_credentials
from toy_provider.entry import CATALOG, LABEL
from toy_provider.settings import ToySettings

WIRE = chat_wire(LABEL, "toy", partial(failures.upstream_error, LABEL))


class ToyTurn(ChatTurn):
    label, service, mark = LABEL, "toy", "toy:v1"

    def __init__(self, call: Call, services: Services, credentials: Credentials, transport: HttpTransport) -> None:
        toy = services.config().section(ToySettings)
        limit = min(call.request.get("max_tokens", toy.max_tokens), toy.max_tokens)
        body = messages_to_chat(call.request, ChatOptions(call.target.model, ChatDialect(), limit, {}))
        url = f"{toy.base_url}/chat/completions"
        super().__init__(call, services, wire=WIRE, transport=transport.stream, url=url, body=body)
        self._credentials = credentials
        self._credential: Credential | None = None

    async def sign_in(self) -> None:
        self._credential = await self._credentials.get()

    def headers(self) -> dict[str, str]:
        assert self._credential is not None
        return {
            "Authorization": f"Bearer {self._credential.access.reveal()}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        }

    def final(self, error: UpstreamError) -> UpstreamError:
        return failures.final_error(LABEL, error, cure="sign in again")


class ToyProvider:
    label = LABEL
    ingress = IngressRules()

    def __init__(self, services: Services) -> None:
        self._services = services
        base_url = services.config().section(ToySettings).base_url
        http = services.client_for(base_url)
        self._credentials = toy_credentials(services.config_dir, http, base_url, services.clock)
        self._transport = HttpTransport(WIRE, http, services.log, services.clock)

    def catalog(self) -> Catalog:
        return CATALOG

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        return Target(model if model in CATALOG.models else "toy-small")

    async def count_tokens(self, call: Call) -> int:
        return await estimate_words(self._services, call)

    async def stream(self, call: Call) -> AsyncGenerator[list[Event], None]:
        turn = ToyTurn(call, self._services, self._credentials, self._transport)
        async with aclosing(turn.run()) as batches:
            async for batch in batches:
                yield batch

    async def close(self) -> None:
        await self._credentials.close()
