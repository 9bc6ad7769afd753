"""The toy provider: chat completions with a bearer token."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from proxy.auth.store import Credential, CredentialSource
from proxy.core.convert.messages_to_chat import ChatDialect, ChatOptions, messages_to_chat
from proxy.core.visible import Visible
from proxy.errors import UpstreamError
from proxy.providers.base import SignedInProvider
from proxy.providers.contract import Call, Services, Target
from proxy.providers.upstream import failures
from proxy.providers.upstream.attempts import AttemptRunner
from proxy.providers.upstream.chat_wire import ChatWire, chat_profile, heuristic_estimate
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.transport import HttpTransport, UpstreamRequest
from toy_provider.account import toy_credentials
from toy_provider.entry import CATALOG, LABEL, TOY
from toy_provider.settings import ToySettings

upstream_error = partial(failures.upstream_error, LABEL)
PROFILE = chat_profile(LABEL, "toy", upstream_error)


class ToyAdapter:
    """One request."""

    profile = PROFILE

    def __init__(self, call: Call, services: Services, credentials: CredentialSource, transport: HttpTransport) -> None:
        toy = services.config().section(ToySettings)
        limit = min(call.request.get("max_tokens", toy.max_tokens), toy.max_tokens)
        body = messages_to_chat(call.request, ChatOptions(call.target.model, ChatDialect(), limit, {}))
        self.wire = ChatWire(call, services, PROFILE, body)
        self._url = f"{toy.base_url}/chat/completions"
        self._call = call
        self._credentials = credentials
        self._credential: Credential | None = None
        self._transport = transport

    async def sign_in(self) -> None:
        self._credential = await self._credentials.get()

    def contact(self, number: int) -> Batches:
        assert self._credential is not None
        headers = {
            "Authorization": f"Bearer {self._credential.access.reveal()}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        }
        payload, request_id = self.wire.body.payload, self._call.request_id
        return self._transport.stream(UpstreamRequest(self._url, headers, payload, request_id, number))

    def contextualise(self, error: UpstreamError, visible: Visible) -> UpstreamError:
        return error

    async def recover(self, error: UpstreamError) -> bool:
        return False

    def client_error(self, error: UpstreamError) -> UpstreamError:
        return failures.client_error(error, sign_in_hint="sign in again")


class ToyProvider(SignedInProvider[ToySettings]):
    entry, section = TOY, ToySettings

    def __init__(self, services: Services) -> None:
        base_url = services.config().section(ToySettings).base_url
        http = services.client_for(base_url)
        super().__init__(services, toy_credentials(services.lent, http, base_url))
        self._transport = HttpTransport(PROFILE, http, services.log, services.clock)

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        return Target(model if model in CATALOG.models else "toy-small")

    async def count_tokens(self, call: Call) -> int:
        return await heuristic_estimate(self._services, call)

    def stream(self, call: Call) -> Batches:
        adapter = ToyAdapter(call, self._services, self._credentials, self._transport)
        return AttemptRunner(call, self._services, adapter).run()
