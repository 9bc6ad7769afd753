"""Calls of P1 whose answer is read whole before anything is done with it, so that each may be repeated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from proxy.auth.refresh import Credentials
from proxy.auth.store import Credential
from proxy.errors import UpstreamError
from proxy.providers.contract import Services
from proxy.providers.p1_codex.account.rate_limits import RateLimits
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.upstream.credential import RequestCredential
from proxy.providers.upstream.retry import GiveUp, Visibility, decide

T = TypeVar("T")

#: One attempt: `(credential, number of the attempt from 1)` to the answer. Raises UpstreamError.
Send = Callable[[Credential, int], Awaitable[T]]


class UnaryCalls:
    """Sends each with one token renewal after a 401, and the usual retries."""

    def __init__(self, services: Services, credentials: Credentials, rate_limits: RateLimits) -> None:
        self._services = services
        self._rate_limits = rate_limits
        self._credentials = credentials

    async def ask(self, request_id: str, send: Send[T]) -> T:
        """The answer. Raises ProxyError."""
        credential = RequestCredential(self._credentials)
        await credential.get()
        sent, attempt = 0, 0
        while True:
            sent += 1
            try:
                return await send(credential.current, sent)
            except UpstreamError as error:
                if error.status == 401 and await credential.renew():
                    continue
                decision = decide(error, attempt=attempt, visible=Visibility.NOTHING, chance=self._services.random())
                if isinstance(decision, GiveUp):
                    if attempt:
                        self._log("buffered_transport_retry_exhausted", request_id, sent, error)
                    raise self._rate_limits.client_error(credential.account_id, error) from None
                self._log("buffered_transport_retry", request_id, sent, error, retryInS=decision.after)
            attempt += 1
            await self._services.sleep(decision.after)

    def _log(self, msg: str, request_id: str, sent: int, error: UpstreamError, **fields: float) -> None:
        known = {"reqId": request_id, "attempt": sent, "kind": error.kind, "status": error.status}
        self._services.log.write("warn", LABEL, msg, **known, **fields)
