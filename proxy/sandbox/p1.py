"""The simulated upstream P1: its state, what tests may look at and change, and its routes."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy.sandbox.p1_account import add_account_routes
from proxy.sandbox.p1_failures import HTTP_FAULTS
from proxy.sandbox.p1_faults import STREAM_FAULTS
from proxy.sandbox.p1_issuer import Issuer
from proxy.sandbox.p1_item_faults import ITEM_FAULTS
from proxy.sandbox.p1_items import Ids
from proxy.sandbox.p1_responses import serve_responses
from proxy.sandbox.p1_search import serve_search
from proxy.sandbox.p1_tokens import TokenBook
from proxy.sandbox.received import Received
from proxy.sandbox.script import Script

#: Every fault that a step of a script may name.
FAULTS: dict[str, Callable[..., Any]] = {**HTTP_FAULTS, **STREAM_FAULTS, **ITEM_FAULTS}

CODEX_PATH = "/backend-api/codex"

#: Requests kept for inspection, each with its body: enough for a test, bounded for a benchmark.
KEPT_REQUESTS = 128

#: Conversations of which the prompt cache remembers a size.
MAX_CACHE_KEYS = 1_000

#: The cache counts in blocks of this many tokens.
CACHE_BLOCK = 128


@dataclass(slots=True)
class P1Options:
    """How the simulated account behaves. All may be changed while it runs.

    `context_form` is how an overflow of `context_limit` (tokens, at four characters each) is told: "failed" (a
    `response.failed` as the only event), "error" (an event of type `error`) or "http" (a 400).
    """

    account_id: str = "acct-sandbox"
    email: str = "sandbox@example.com"
    plan: str = "plus"
    access_lifetime_s: int = 864_000  # ten days, as the real issuer
    word_delay_s: float = 0.0
    events_per_write: int | None = None
    context_limit: int = 272_000
    context_form: str = "failed"
    device_pending_polls: int = 1
    device_interval_s: int = 1


class P1:
    """State and routes. `requests` and `searches` hold the last KEPT_REQUESTS, oldest first."""

    def __init__(
        self,
        options: P1Options | None = None,
        script: Iterable[Mapping[str, Any]] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.options = options or P1Options()
        self.clock = clock
        self.origin = ""  # set when the server knows its port
        self.tokens = TokenBook(
            account_id=self.options.account_id,
            email=self.options.email,
            plan=self.options.plan,
            lifetime_s=self.options.access_lifetime_s,
            clock=clock,
        )
        self.issuer = Issuer(self)
        self.script = Script(script, FAULTS)
        self.ids = Ids()
        self.requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.searches: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.total_requests = 0  # all Responses requests ever, refused ones too
        self.active = 0  # requests being answered right now
        self._idle = asyncio.Event()
        self._idle.set()
        self._cached: OrderedDict[str, int] = OrderedDict()

    @property
    def refreshes(self) -> int:
        """How many refresh tokens were exchanged with success."""
        return self.issuer.refreshes

    def settings(self) -> dict[str, str]:
        """The variables that point a proxy here."""
        return {
            "PROXY_P1_BASE_URL": f"{self.origin}{CODEX_PATH}/responses",
            "PROXY_P1_ISSUER": self.origin,
        }

    def stored_credential(self, lifetime_s: int | None = None, expires_ms: int | None = None) -> dict[str, Any]:
        """A fresh sign-in as a client stores it: `{"access","refresh","expires","accountId"}`, expires in epoch ms.

        `lifetime_s` may be negative (an expired token); `expires_ms` replaces the stored time only, so that a record
        can look fresh while its token is refused.
        """
        issued = self.tokens.issue(self.origin, lifetime_s)
        lifetime = self.tokens.lifetime_s if lifetime_s is None else lifetime_s
        return {
            "access": issued["access_token"],
            "refresh": issued["refresh_token"],
            "expires": int((self.clock() + lifetime) * 1000) if expires_ms is None else expires_ms,
            "accountId": self.options.account_id,
        }

    def revoke_access(self) -> None:
        """All access tokens stop working: the next request gets a 401."""
        self.tokens.revoke_access()

    def cached_tokens(self, key: str | None, tokens: int) -> int:
        """How much of a prompt of `tokens` the cache knew under the key, which now remembers this size."""
        if not key:
            return 0
        known = min(self._cached.pop(key, 0), tokens) // CACHE_BLOCK * CACHE_BLOCK
        self._cached[key] = tokens
        if len(self._cached) > MAX_CACHE_KEYS:
            self._cached.popitem(last=False)
        return known

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Counts a request as active for as long as it is answered, however that ends."""
        self.active += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.active -= 1
            if not self.active:
                self._idle.set()

    async def idle(self, timeout_s: float = 2.0) -> None:
        """Returns when no request is being answered. Raises TimeoutError: somebody did not let go."""
        async with asyncio.timeout(timeout_s):
            await self._idle.wait()

    def add_routes(self, app: web.Application) -> None:
        async def responses(request: web.Request) -> web.StreamResponse:
            return await serve_responses(self, request)

        async def search(request: web.Request) -> web.StreamResponse:
            return await serve_search(self, request)

        app.router.add_route("*", f"{CODEX_PATH}/responses", responses)
        app.router.add_post(f"{CODEX_PATH}/alpha/search", search)
        add_account_routes(self, app)
        self.issuer.add_routes(app)
