"""The simulated upstream P2: its state, what tests may look at and change, and its routes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.endpoint import guarded
from proxy.sandbox.p2.catalog import listed_models
from proxy.sandbox.p2.chat import STREAM, WHOLE, serve_chat
from proxy.sandbox.p2.headers import check_caller
from proxy.sandbox.p2.issuer import DeviceIssuer
from proxy.sandbox.p2.tokens import DeviceTokens
from proxy.sandbox.upstream import Options, Upstream

API_PATH = "/coding/v1"

WIRES = (STREAM, WHOLE)

#: Programs that the gateway takes for coding agents, by how their user agent begins, in small letters.
AGENTS = ("kimicli/", "kimi-code-cli/", "claude-cli/", "claude-code/", "roo-code/", "roocode/", "kilo-code/")


@dataclass(slots=True)
class P2Options(Options):
    """How the simulated account behaves. All may be changed while it runs.

    `device_answers` are the OAuth errors with which the first polls of a sign-in are answered, `pending_status` the
    HTTP status of those that do not end it (some say 200 occurs); with `watch_interval` a poll that comes too early
    is told to slow down. `one_effort` refuses `thinking` beside `reasoning_effort`, as other front ends of this
    vendor do. `usage_places`: see ChatAnswer. `context_limit` 0 is the model's own.
    """

    user_id: str = "u_sandbox"
    device_id: str = "5a9d0b0c0ffee0123456789abcdef012"  # of the stored sign-in
    access_lifetime_s: int = 900
    device_answers: tuple[str, ...] = ("authorization_pending",)
    device_interval_s: int = 1
    device_lifetime_s: int = 900
    pending_status: int = 400
    watch_interval: bool = False
    agents: tuple[str, ...] = AGENTS
    one_effort: bool = False
    usage_places: tuple[str, ...] = ("choice", "own")
    context_limit: int = 0


class P2(Upstream):
    """State and routes. `issuer` is the sign-in service, `tokens` what it has issued."""

    options: P2Options

    def __init__(self, options: P2Options | None = None, clock: Callable[[], float] = time.time) -> None:
        super().__init__(WIRES, clock)
        self.options = options or P2Options()
        self.tokens = DeviceTokens(self.options.user_id, self.options.access_lifetime_s, clock)
        self.issuer = DeviceIssuer(self)

    @property
    def refreshes(self) -> int:
        """How many refresh tokens were exchanged with success."""
        return self.issuer.refreshes

    def trace_headers(self) -> dict[str, str]:
        return {"x-request-id": self.ids.new("req"), "x-trace-id": self.ids.new("trace")}

    def settings(self) -> dict[str, str]:
        """The variables that point a proxy here."""
        return {"PROXY_P2_BASE_URL": f"{self.origin}{API_PATH}", "PROXY_P2_OAUTH_HOST": self.origin}

    def stored_credential(self, lifetime_s: int | None = None, expires_ms: int | None = None) -> dict[str, Any]:
        """A fresh sign-in of `options.device_id` as a client stores it, see `Tokens.stored`, with scope and user.

        `lifetime_s` may be negative: an expired token.
        """
        issued = self.tokens.issue(self.options.device_id, lifetime_s)
        record = self.tokens.stored(issued, lifetime_s, expires_ms)
        return {**record, "scope": issued["scope"], "userId": self.tokens.user_id}

    def revoke_access(self) -> None:
        """All access tokens stop working: the next request gets a 401."""
        self.tokens.revoke_access()

    def add_routes(self, app: web.Application) -> None:
        async def chat(request: web.Request) -> web.StreamResponse:
            return await serve_chat(self, request)

        async def models(request: web.Request) -> web.Response:
            return self._account(request, listed_models())

        async def usages(request: web.Request) -> web.Response:
            return self._account(request, _usages(self.clock()))

        app.router.add_post(f"{API_PATH}/chat/completions", chat)
        app.router.add_get(f"{API_PATH}/models", guarded(models))
        app.router.add_get(f"{API_PATH}/usages", guarded(usages))
        self.issuer.add_routes(app)

    def _account(self, request: web.Request, body: Mapping[str, Any]) -> web.Response:
        check_caller(request.headers, self.tokens, self.options.agents)
        return web.json_response(body, headers=self.trace_headers())


def _usages(now: float) -> dict[str, Any]:
    """The quota of the week, and of the window of five hours, in the form that the vendor's own client reads."""
    week, window = (_quota(used, now + hours * 3600) for used, hours in ((3, 168), (12, 5)))
    return {"usage": week, "limits": [{"window": {"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"}, "detail": window}]}


def _quota(used: int, resets: float) -> dict[str, Any]:
    time_text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(resets))
    return {"limit": "100", "used": str(used), "remaining": str(100 - used), "resetTime": time_text}
