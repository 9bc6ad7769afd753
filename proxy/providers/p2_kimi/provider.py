"""P2 as the server sees it, and as an upstream; its decisions about a request: effort, body, and the body to send after
a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from proxy.auth.store import CredentialSource
from proxy.core.convert.messages_to_chat import ChatDialect, ChatOptions, messages_to_chat
from proxy.core.effort import effort_asked, lost_effort
from proxy.core.models import ModelList
from proxy.core.routing import Added, is_auto_review
from proxy.core.search.results import Found
from proxy.core.visible import Visible
from proxy.errors import PROGRAM, UpstreamError
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.base import SignedInProvider
from proxy.providers.contract import Blind, Call, SearchCall, Services, Target
from proxy.providers.p2_kimi.account import usage_windows
from proxy.providers.p2_kimi.account.device import device_headers, user_agent
from proxy.providers.p2_kimi.account.signin import p2_credentials
from proxy.providers.p2_kimi.catalog import LABEL, KimiModel, model_for, offered_model
from proxy.providers.p2_kimi.entry import KIMI
from proxy.providers.p2_kimi.search import KimiSearch
from proxy.providers.p2_kimi.settings import KimiSettings
from proxy.providers.upstream import failures
from proxy.providers.upstream.adapter import RequestCredential, translated
from proxy.providers.upstream.attempts import AttemptRunner
from proxy.providers.upstream.chat_wire import BodyFallback, ChatWire, chat_profile, heuristic_estimate
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.model_list import ListQuestion
from proxy.providers.upstream.transport import (
    HttpTimers,
    HttpTransport,
    Transport,
    UpstreamRequest,
)

DIALECT = ChatDialect(
    system="in_place",
    tool_images="inside",
    reasoning="calls",
    bare_calls=True,
    keep_auto=False,
    strict_input=False,
    typed=True,
    limit="max_completion_tokens",
)


#: For a model that takes no pictures.
BLIND = replace(DIALECT, images=False)


def target_of(model: str, request: Mapping[str, Any], added: Added = (), offered: ModelList | None = None) -> Target:
    """Resolves a requested name. The safety classifier must not think: it is small, and the client waits for it."""
    row = model_for(model, added, offered)
    blind: Blind = "" if row.sees else "anywhere"
    if is_auto_review(request):
        return Target(row.id, uploads_noted=not row.sees, blind=blind)
    asked, facts = effort_asked(request), None if offered is None else offered.models.get(row.id)
    lost = lost_effort(asked, row.effort(asked), None if facts is None else facts.efforts)
    return Target(row.id, effort=row.effort(asked), uploads_noted=not row.sees, narrowed=lost, blind=blind)


def chat_body(call: Call, row: KimiModel) -> dict[str, Any]:
    """The upstream body of a call, with the members that the vendor's own client sends. Raises InvalidRequest."""
    extra: dict[str, Any] = {"thinking": row.thinking(call.target.effort)}
    if call.cache_key:
        extra["prompt_cache_key"] = call.cache_key
    # the few tokens that the classifier requests would be used up by reasoning, which cannot always be switched off
    limit = row.max_tokens(None if is_auto_review(call.request) else call.request.get("max_tokens"))
    return messages_to_chat(
        call.request, ChatOptions(row.id, DIALECT if row.sees else BLIND, limit, extra), call.simplified
    )


def _other_choice(row: KimiModel, body: Mapping[str, Any]) -> dict[str, Any] | None:
    choice = body.get("tool_choice")
    if choice is None:
        return None
    rest = {name: value for name, value in body.items() if name != "tool_choice"}
    named = isinstance(choice, Mapping) and row.bears_required
    return {**rest, "tool_choice": "required"} if named else rest


def fallbacks(row: KimiModel) -> tuple[BodyFallback, ...]:
    """Refusals of some models, and the body to send then."""
    return (BodyFallback(_refuses_the_choice, partial(_other_choice, row)),)


def _refuses_the_choice(text: str) -> bool:
    return "tool_choice" in text and "incompatible with thinking" in text


SERVICE = "kimi"
upstream_error = partial(failures.upstream_error, LABEL)
client_error = partial(failures.client_error, sign_in_hint=f"sign in again: `{PROGRAM} auth login {LABEL}`")
PROFILE = chat_profile(LABEL, SERVICE, upstream_error)

#: Wait after a rate limit without a time, as in the vendor's own client.
RATE_LIMIT_WAIT_S = 5.0


class KimiAdapter:
    """One request to P2."""

    profile = PROFILE

    def __init__(
        self,
        call: Call,
        services: Services,
        body: dict[str, Any],
        *,
        transport: Transport,
        url: str,
        credentials: CredentialSource,
        agent: str,
        row: KimiModel,
    ) -> None:
        self._call = call
        self._services = services
        self._transport = transport
        self._url = url
        self._credential = RequestCredential(credentials, call.timings)
        self._agent = agent
        self._device: dict[str, str] = {}
        self.wire = ChatWire(call, services, PROFILE, body, fallbacks=fallbacks(row))

    async def sign_in(self) -> None:
        await self._credential.get()
        self._device = await device_headers(self._services.config_dir, self._agent)

    def contact(self, number: int) -> Batches:
        call, payload = self._call, self.wire.body.written
        return self._transport(
            UpstreamRequest(
                self._url,
                self._headers(),
                payload,
                call.request_id,
                number,
                call.capture,
                call.timings,
            )
        )

    def _headers(self) -> dict[str, str]:
        return {
            **self._device,
            "Authorization": f"Bearer {self._credential.current.access.reveal()}",
            "Content-Type": "application/json",
            "Accept": "application/json",  # as the vendor's own client, which gets a stream anyway
            "Accept-Encoding": "identity",
        }

    def contextualise(self, error: UpstreamError, visible: Visible) -> UpstreamError:
        return error

    async def recover(self, error: UpstreamError) -> bool:
        """Renews the token after a 401."""
        return error.status == 401 and await self._credential.renew()

    def client_error(self, error: UpstreamError) -> UpstreamError:
        if error.status == 404:  # clients hide its text, and ask again
            error = error.replaced(kind="invalid_request", status=400)
        if error.kind == "rate_limit" and error.retry_after is None:
            error = error.replaced(retry_after=RATE_LIMIT_WAIT_S)
        return client_error(error)


class KimiProvider(SignedInProvider[KimiSettings]):
    """The Kimi Code subscription."""

    entry, section = KIMI, KimiSettings

    def __init__(self, services: Services) -> None:
        config = services.config()
        kimi = config.section(KimiSettings)
        http, agent = services.client_for(kimi.oauth_host), user_agent(config)
        credentials = p2_credentials(services.lent, kimi.oauth_host, http, user_agent=agent)
        super().__init__(services, credentials)
        http, timers = services.client_for(kimi.base_url), services.tuning.of(HttpTimers)
        self._transport = HttpTransport(PROFILE, http, services.log, services.clock, timers=timers)
        self._search = KimiSearch(services, PROFILE, credentials, self._transport)

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        return target_of(model, request, self._settings.models, self._offered)

    async def count_tokens(self, call: Call) -> int:
        return await heuristic_estimate(self._services, call)

    def stream(self, call: Call) -> Batches:
        row = model_for(call.model, self._settings.models, self._offered)
        return translated(call, lambda: chat_body(call, row), partial(self._ask, call, row))

    async def _model_question(self) -> ListQuestion:
        access = (await self._credentials.get()).access
        device = await device_headers(self._services.config_dir, user_agent(self._services.config()))
        headers = {**device, "Authorization": f"Bearer {access.reveal()}", "Accept": "application/json"}
        return ListQuestion(f"{self._settings.base_url}/models", headers, offered_model)

    def _ask(self, call: Call, row: KimiModel, body: dict[str, Any]) -> Batches:
        config = self._services.config()
        adapter = KimiAdapter(
            call,
            self._services,
            body,
            transport=self._transport.stream,
            url=f"{config.section(KimiSettings).base_url}/chat/completions",
            credentials=self._credentials,
            agent=user_agent(config),
            row=row,
        )
        return AttemptRunner(call, self._services, adapter).run()

    async def search(self, call: SearchCall) -> Found:
        try:
            return await self._search.search(call)
        except UpstreamError as error:
            raise client_error(error) from None

    async def ask_allowance(self) -> UsageReport:
        services, config = self._services, self._services.config()
        base_url = self._settings.base_url
        http, agent = services.client_for(base_url), user_agent(config)
        return await usage_windows.ask(self._credentials, services.config_dir, base_url, agent, http, services.clock)
