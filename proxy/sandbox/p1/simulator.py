"""The simulated upstream P1: its state, what tests may look at and change, and its routes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from proxy.sandbox.p1.account import add_account_routes
from proxy.sandbox.p1.issuer import Issuer
from proxy.sandbox.p1.quota import Quota
from proxy.sandbox.p1.responses import WIRE, serve_responses
from proxy.sandbox.p1.search import serve_search
from proxy.sandbox.p1.socket.faults import WIRE as SOCKET_WIRE
from proxy.sandbox.p1.socket.sockets import Limits, Sockets
from proxy.sandbox.p1.socket.upgrade import UPGRADE, serve_upgrade
from proxy.sandbox.p1.socket.upgrade_faults import UPGRADE_FAULTS
from proxy.sandbox.p1.tokens import TokenBook
from proxy.sandbox.recorder import KEPT_REQUESTS, Received
from proxy.sandbox.upstream import Options, Upstream

CODEX_PATH = "/backend-api/codex"


@dataclass(slots=True)
class P1Options(Options):
    """How the simulated account behaves. All may be changed while it runs.

    `context_form` is how an overflow of `context_limit` (tokens, at four characters each) is told: "failed" (a
    `response.failed` as the only event), "error" (an event of type `error`) or "http" (a 400).

    Without `accept_sockets` every upgrade is refused with 426; one beyond the `limits` with an empty 403. A socket
    older than `socket_age_s` takes no more requests. `announced`: news of the account come before each answer there.
    """

    account_id: str = "acct-sandbox"
    email: str = "sandbox@example.com"
    access_lifetime_s: int = 864_000  # ten days, as the real issuer
    context_limit: int = 272_000
    context_form: str = "failed"
    device_pending_polls: int = 1
    device_interval_s: int = 1
    quota: Quota = field(default_factory=Quota)
    accept_sockets: bool = True
    limits: Limits = Limits()
    socket_age_s: float = 3_600
    announced: bool = True


class P1(Upstream):
    """State and routes. `searches` are kept like `requests`; the frames of sockets are among the requests.

    `sockets` knows who asked for one and what came over it.
    """

    options: P1Options

    def __init__(self, options: P1Options | None = None, clock: Callable[[], float] = time.time) -> None:
        super().__init__((WIRE, SOCKET_WIRE), clock, {UPGRADE: UPGRADE_FAULTS})
        self.options = options or P1Options()
        self.tokens = TokenBook(
            account_id=self.options.account_id,
            email=self.options.email,
            plan=self.options.quota.plan,
            lifetime_s=self.options.access_lifetime_s,
            clock=clock,
        )
        self.issuer = Issuer(self)
        self.sockets = Sockets(clock)
        self.searches: deque[Received] = deque(maxlen=KEPT_REQUESTS)

    def trace_headers(self) -> dict[str, str]:
        request_id = self.ids.new("req")
        return {"x-request-id": request_id, "x-oai-request-id": request_id, "cf-ray": f"{request_id[-16:]}-SBX"}

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
        """A fresh sign-in as a client stores it, see `Tokens.stored`, with `accountId`.

        `lifetime_s` may be negative: an expired token.
        """
        record = self.tokens.stored(self.tokens.issue(self.origin, lifetime_s), lifetime_s, expires_ms)
        return {**record, "accountId": self.options.account_id}

    def revoke_access(self) -> None:
        """All access tokens stop working: the next request gets a 401."""
        self.tokens.revoke_access()

    def add_routes(self, app: web.Application) -> None:
        async def responses(request: web.Request) -> web.StreamResponse:
            return await serve_responses(self, request)

        async def upgrade(request: web.Request) -> web.StreamResponse:
            return await serve_upgrade(self, request)

        async def search(request: web.Request) -> web.StreamResponse:
            return await serve_search(self, request)

        app.router.add_post(f"{CODEX_PATH}/responses", responses)
        app.router.add_get(f"{CODEX_PATH}/responses", upgrade, allow_head=False)
        app.router.add_post(f"{CODEX_PATH}/alpha/search", search)
        add_account_routes(self, app)
        self.issuer.add_routes(app)
