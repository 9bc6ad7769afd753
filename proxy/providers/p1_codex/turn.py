"""One answer of P1: what the general turn over Responses does not know."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.config import Config
from proxy.core.read_tool import ReadOffsets
from proxy.core.responses_events import spent_window
from proxy.errors import UpstreamError
from proxy.providers.base import Call, Services
from proxy.providers.p1_codex import request as p1_request
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import SERVICE, WIRE
from proxy.providers.p1_codex.request import Prepared
from proxy.providers.p1_codex.telemetry import Allowances
from proxy.providers.responses import ResponsesTurn
from proxy.providers.transport import Batch, Outgoing, Transport


class CodexTurn(ResponsesTurn):
    """Runs one call. Use once."""

    label = LABEL
    service = SERVICE
    empty_is_failure = True

    def __init__(
        self,
        call: Call,
        prepared: Prepared,
        *,
        config: Config,
        services: Services,
        credentials: Credentials,
        transport: Transport,
        offsets: ReadOffsets,
        allowances: Allowances,
    ) -> None:
        signatures = config.p1_reasoning_signatures
        super().__init__(call, services, wire=WIRE, body=prepared.body, offsets=offsets, signatures=signatures)
        self._lite = prepared.lite
        self.plain = prepared.plain
        self._allowances = allowances
        self._config = config
        self._credentials = credentials
        self._credential: Credential | None = None
        self._transport = transport
        self._renewed = False
        self._responded = False
        self._spent: float | None = None  # an allowance that is spent, in case the stream ends without a word

    async def sign_in(self) -> None:
        self._credential = await self._credentials.get()

    def contact(self, number: int) -> AsyncGenerator[Batch, None]:
        if self._credential is None:
            raise RuntimeError("contacted before sign-in")
        self._responded, self._spent = False, None
        headers = p1_request.headers(self._config, lite=self._lite, session=self._call.session)
        return self._transport(
            Outgoing(
                url=self._config.p1_base_url,
                headers=p1_request.with_credential(headers, self._credential),
                body=self._payload,
                header_timeout_s=self._config.p1_header_timeout_ms / 1000,
                request_id=self._call.request_id,
                attempt=number,
            )
        )

    def look(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "codex.rate_limits":
            self._spent = spent_window(event)
            self._allowances.heed_event(self._account, event)
            return
        if kind == "error" and isinstance(event.get("headers"), Mapping):
            self._allowances.heed_headers(self._account, event["headers"])
        super().look(event)
        self._responded = self._responded or (isinstance(kind, str) and kind.startswith("response."))

    def explain(self, error: UpstreamError) -> UpstreamError:
        """A cut stream after a spent allowance and nothing else was a refusal."""
        if error.kind != "transport" or self._responded or self._spent is None:
            return error
        message = "The usage limit has been reached"
        return UpstreamError(message, kind="usage_limit", retry_after=self._spent, provider=LABEL)

    async def cure(self, error: UpstreamError) -> bool:
        """A new token after a 401."""
        if error.status == 401 and not self._renewed and self._credential is not None:
            self._renewed = True
            self._credential = await self._credentials.renew(self._credential.access)
            return True
        return await super().cure(error)

    def final(self, error: UpstreamError) -> UpstreamError:
        return self._allowances.final(self._account, error)

    @property
    def _account(self) -> str | None:
        return self._credential.account_id if self._credential is not None else None
