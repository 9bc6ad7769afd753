"""P1 as the server sees it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from proxy.config import Config
from proxy.core.convert.messages_to_search import forced_search
from proxy.core.ingress import Ingress, IngressRules
from proxy.core.media.requests import ImageRequest, TranscriptionRequest
from proxy.core.search.results import Found
from proxy.core.tokens.counting import Length, count_responses
from proxy.core.tools.read_tool import OffsetStore
from proxy.providers.accounts.usage_report import UsageReport
from proxy.providers.base import SignedInProvider
from proxy.providers.contract import Call, MediaAnswer, MediaCall, NativeAnswer, SearchCall, Services, Target
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.account import usage_windows
from proxy.providers.p1_codex.account.rate_limits import RateLimits
from proxy.providers.p1_codex.account.signin import p1_credentials
from proxy.providers.p1_codex.account.workspace import Workspaces
from proxy.providers.p1_codex.adapter import CodexResources
from proxy.providers.p1_codex.catalog import IMAGE_MODEL, LABEL, MODELS, CodexModel, like, model_for, offered_model
from proxy.providers.p1_codex.chat import RULES, chat_request
from proxy.providers.p1_codex.compaction.flow import CompactionFlow
from proxy.providers.p1_codex.entry import CODEX
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p1_codex.media.calls import MediaCalls
from proxy.providers.p1_codex.native.body import served_target
from proxy.providers.p1_codex.native.leniency import lenient_body
from proxy.providers.p1_codex.native.route import NativeRoute
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.search import CodexSearch
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p1_codex.signed import Signer
from proxy.providers.p1_codex.socket.manager import SocketManager
from proxy.providers.p1_codex.turn import CodexTurn
from proxy.providers.upstream.adapter import translated
from proxy.providers.upstream.event_reader import Batches
from proxy.providers.upstream.model_list import ListQuestion
from proxy.providers.upstream.new_models import NewModels
from proxy.providers.upstream.transport import HttpTimers, HttpTransport


class CodexProvider(SignedInProvider[CodexSettings]):
    """The ChatGPT subscription."""

    entry, section = CODEX, CodexSettings
    image_model = IMAGE_MODEL

    def __init__(self, services: Services) -> None:
        codex = services.config().section(CodexSettings)
        credentials = p1_credentials(services.lent, codex.issuer, services.http)
        super().__init__(services, credentials)
        self._new_models = NewModels(services.log, LABEL)
        self.rate_limits = RateLimits(services.log, services.clock, services.allowances)
        self._transport = HttpTransport(
            PROFILE,
            services.http,
            services.log,
            services.clock,
            observe_headers=self._observe_headers,
            timers=services.tuning.of(HttpTimers),
        )
        self._signer = Signer(services, credentials, Workspaces(services), self.rate_limits)
        self._compaction = CompactionFlow(self._signer, self._transport.stream)
        floor_s = codex.ws_connect_spacing_ms / 1000
        self._sockets = SocketManager(services, floor_s=floor_s, observe_headers=self._observe_headers)
        self._resources = CodexResources(self._signer, self._transport.stream, self._sockets)
        self._offsets = OffsetStore()
        self._native = NativeRoute(self._signer, self._transport)
        self._media = MediaCalls(self._signer, self._transport)
        self._search = CodexSearch(services, self._signer, self._transport)

    def ingress(self, model: str) -> IngressRules:
        return RULES

    def hosted_tools(self, model: str) -> frozenset[str]:
        return frozenset({"web_search"})

    def resolve(self, model: str, request: Mapping[str, Any], *, auto_review: bool) -> Target:
        config, offered = self._services.config(), self._offered
        return self._noted(p1_request.resolve(model, request, config, offered, auto_review=auto_review))

    def chat_request(self, body: Mapping[str, Any], model: str) -> Ingress:
        target = p1_request.final_model(model, self._settings, self._offered)[0]
        offered = None if self._offered is None else self._offered.models.get(target)
        most = offered is not None and "ultra" in (offered.efforts or ())
        return chat_request(body, lite=self._row(target).lite, ultra=most)

    def lenient_body(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        return lenient_body(body)

    def native_target(self, model: str, body: Mapping[str, Any]) -> Target:
        target = self._noted(p1_request.native_target(model, body, self._services.config(), self._offered))
        return served_target(target, body, self._row(target.model))

    def _row(self, model: str) -> CodexModel:
        return model_for(model, self._settings.models, self._offered)

    def _noted(self, target: Target) -> Target:
        known = target.model in MODELS or target.model in dict(self._settings.models)
        if not known and (self._offered is None or target.model not in self._offered.models):
            self._new_models.met(target.model, like(target.model))
        return target

    async def _model_question(self) -> ListQuestion:
        signed = self._signer.request("models")
        await signed.sign_in()
        url = signed.url(p1_request.models_url(self._settings.base_url))
        headers = signed.headers(p1_request.account_headers(self._services.config(), lite=True))
        return ListQuestion(url, headers, offered_model, "models")

    def native(self, call: Call) -> AbstractAsyncContextManager[NativeAnswer]:
        return self._native.answer(call)

    async def make_images(self, call: MediaCall, request: ImageRequest) -> MediaAnswer:
        return await self._media.images(call, request)

    async def transcribe(self, call: MediaCall, request: TranscriptionRequest) -> MediaAnswer:
        return await self._media.transcript(call, request)

    async def count_tokens(self, call: Call) -> int:
        config = self._services.config()

        def work(length: Length) -> int:
            return count_responses(self._prepare(call, config).body, length)

        return await self._services.tokenizer.run(work)

    def stream(self, call: Call) -> Batches:
        """The answer's batches. Not an async generator itself: each layer between an upstream and the writer costs
        every event."""
        config = self._services.config()
        tool = forced_search(call.request)
        if tool is not None:
            return self._search.reply(call, tool)

        def turn(prepared: Prepared) -> CodexTurn:
            return CodexTurn(call, prepared, config, self._resources)

        def run(prepared: Prepared) -> Batches:
            asked, served = call.target.model, prepared.options.model
            if asked != served:  # for a hosted search
                note = {"reqId": call.request_id, "asked": asked, "served": served}
                self._services.log.write("info", LABEL, "model_stood_in", **note)
            return self._compaction.run(call, prepared, turn)

        return translated(call, lambda: self._prepare(call, config), run)

    def _prepare(self, call: Call, config: Config) -> Prepared:
        offsets = self._offsets.of(call.owner, call.request)
        return p1_request.prepare(call, config, offsets, self._services.signs_as(LABEL), self._offered)

    async def search(self, call: SearchCall) -> Found:
        return await self._search.search(call)

    def _observe_headers(self, sent: Mapping[str, str], answered: Mapping[str, str]) -> None:
        self.rate_limits.observe_headers(sent.get(p1_request.ACCOUNT_HEADER), answered)

    async def ask_allowance(self) -> UsageReport:
        services = self._services
        return await usage_windows.ask(self._credentials, services.config(), services.http, services.clock)

    def served_elsewhere(self, call: Call) -> None:
        """Forgets a conversation that went on with another provider."""
        # a small request on the side says nothing about the conversation
        if call.owner is not None and len(call.request["messages"]) > 1:
            self._compaction.discard(call.owner, call.request_id, "served_elsewhere")

    async def close(self) -> None:
        await self._sockets.close()
        await super().close()
