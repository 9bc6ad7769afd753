"""P2 as the server sees it, and one answer of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.core.convert.messages_to_chat import ChatDialect, ChatOptions, messages_to_chat
from proxy.core.ingress import IngressRules
from proxy.core.messages import Event
from proxy.core.routing import Catalog
from proxy.errors import UpstreamError
from proxy.providers.contract import Call, Services, Target
from proxy.providers.p2_kimi.account.device import device_headers, user_agent
from proxy.providers.p2_kimi.account.signin import p2_credentials
from proxy.providers.p2_kimi.catalog import CATALOG, LABEL, model_for
from proxy.providers.p2_kimi.settings import KimiSettings
from proxy.providers.upstream import failures
from proxy.providers.upstream.chat_turn import ChatTurn, chat_wire, estimate_words
from proxy.providers.upstream.transport import HttpTransport, Transport

SERVICE = "kimi"
upstream_error = partial(failures.upstream_error, LABEL)
WIRE = replace(chat_wire(LABEL, SERVICE, upstream_error), skips_garbage=True)

_KIMI = ChatDialect(
    system="in_place",
    tool_images="inside",
    reasoning="calls",
    bare_calls=True,
    keep_auto=False,
    strict_input=False,
    typed=True,
)
#: K3 knows no system role.
DIALECTS = {"kimi": _KIMI, "k3": replace(_KIMI, system="user")}
#: A rate limit without a time; the vendor's own client waits as long.
RATE_LIMIT_WAIT_S = 5.0


def chat_body(call: Call) -> dict[str, Any]:
    """The upstream body of a call. Raises InvalidRequest."""
    row = model_for(call.model)
    extra: dict[str, Any] = {"reasoning_effort": call.target.effort, "thinking": {"type": "enabled"}}
    if call.session:
        extra["prompt_cache_key"] = call.session
    limit = row.max_tokens(call.request.get("max_tokens"))
    return messages_to_chat(call.request, ChatOptions(row.id, DIALECTS[row.dialect], limit, extra))


class KimiTurn(ChatTurn):
    """One answer."""

    label = LABEL
    service = SERVICE
    mark = f"model-proxy:{LABEL}:v1"

    def __init__(
        self,
        call: Call,
        services: Services,
        *,
        transport: Transport,
        url: str,
        credentials: Credentials,
        agent: str,
    ) -> None:
        super().__init__(call, services, wire=WIRE, transport=transport, url=url, body=chat_body(call))
        self._credentials = credentials
        self._credential: Credential | None = None
        self._agent = agent
        self._device: dict[str, str] = {}
        self._tried: set[str] = set()

    async def sign_in(self) -> None:
        self._credential = await self._credentials.get()
        self._device = await device_headers(self._services.config_dir, self._agent)

    def headers(self) -> dict[str, str]:
        if self._credential is None:
            raise RuntimeError("asked for headers before sign-in")
        return {
            **self._device,
            "Authorization": f"Bearer {self._credential.access.reveal()}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
        }

    async def cure(self, error: UpstreamError) -> bool:
        """A new token after a 401; and for what some models refuse, the next best wish."""
        if error.status == 401 and self._credential is not None and self._first("token"):
            self._credential = await self._credentials.renew(self._credential.access)
            return True
        text = error.message.lower()
        if error.status != 400:
            return False
        if "tool_choice" in text and "incompatible with thinking" in text and self._first("choice"):
            return self._relax_choice()
        if "'thinking' and 'reasoning_effort'" in text and self._first("effort"):
            effort = self.body.pop("reasoning_effort", None)
            self.body["thinking"] = {"type": "enabled", "effort": effort}
            return True
        return False

    def _relax_choice(self) -> bool:
        """K3 bears `required` but no named function; the others neither."""
        choice = self.body.pop("tool_choice", None)
        if isinstance(choice, Mapping) and model_for(self._call.model).dialect == "k3":
            self.body["tool_choice"] = "required"
        return choice is not None

    def _first(self, cure: str) -> bool:
        first = cure not in self._tried
        self._tried.add(cure)
        return first

    def final(self, error: UpstreamError) -> UpstreamError:
        if error.kind == "rate_limit" and error.retry_after is None:
            error.retry_after = RATE_LIMIT_WAIT_S
        return failures.final_error(LABEL, error, cure=f"sign in again: model-proxy auth login {LABEL}")


class KimiProvider:
    """The Kimi Code subscription."""

    label = LABEL
    ingress = IngressRules()

    def __init__(self, services: Services) -> None:
        self._services = services
        config = services.config()
        kimi = config.section(KimiSettings)
        self._credentials = p2_credentials(
            services.config_dir,
            kimi.oauth_host,
            services.client_for(kimi.oauth_host),
            services.clock,
            services.log,
            user_agent=user_agent(config),
            sleep=services.sleep,
        )
        self._transport = HttpTransport(WIRE, services.client_for(kimi.base_url), services.log, services.clock)

    def catalog(self) -> Catalog:
        return CATALOG

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        row = model_for(model)
        return Target(row.id, effort=row.effort(request.get("output_config")))

    async def count_tokens(self, call: Call) -> int:
        return await estimate_words(self._services, call)

    async def stream(self, call: Call) -> AsyncGenerator[list[Event], None]:
        config = self._services.config()
        turn = KimiTurn(
            call,
            self._services,
            transport=self._transport.stream,
            url=f"{config.section(KimiSettings).base_url}/chat/completions",
            credentials=self._credentials,
            agent=user_agent(config),
        )
        async with aclosing(turn.run()) as batches:
            async for batch in batches:
                yield batch

    async def close(self) -> None:
        await self._credentials.close()
