"""The simulated upstream P4: its state, what tests may look at and change, and its routes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.endpoint import guarded
from proxy.sandbox.p4.catalog import listed_models
from proxy.sandbox.p4.gateway import check_account, check_key
from proxy.sandbox.p4.wires import STREAMS, WHOLES, serve_wire
from proxy.sandbox.recorder import KEPT_REQUESTS, Received, receive
from proxy.sandbox.upstream import Options, Upstream

API_PATH = "/zen/go/v1"

WIRES = (*STREAMS.values(), *WHOLES.values())

#: Path below the base -> the wire that is spoken there.
PATHS = {"chat/completions": "chat", "messages": "messages", "responses": "responses"}

#: Window of the subscription -> its length in seconds.
WINDOWS = {"rolling": 5 * 3600, "weekly": 7 * 86_400, "monthly": 30 * 86_400}


@dataclass(slots=True)
class P4Options(Options):
    """How the simulated subscription behaves. All may be changed while it runs.

    `needs_session` and `tidy_client` switch the session rule and the rules in `p4_gateway`. `check_signatures` makes
    the messages wire refuse thoughts that it did not sign, `refuse_images` the chat wire refuse pictures for a model
    without eyes (else it does not look at them). `cost_comes` is where the cost frame stands: "together" with the end
    of the answer in one write, "later", or "none". `usage_places`: see ChatAnswer. `usage` is how many percent of
    each window are used; at 100 it is told to be limited, which by itself refuses nothing.
    """

    api_key: str = "sk-sandbox-opencode-go"
    account_id: str = "go-sandbox"
    needs_session: bool = True
    tidy_client: bool = True
    check_signatures: bool = False
    refuse_images: bool = False
    subscribed: bool = True
    blocked_models: frozenset[str] = frozenset()
    cost_comes: str = "together"
    usage_places: tuple[str, ...] = ("own",)
    usage: dict[str, float] = field(default_factory=lambda: {"rolling": 12.5, "weekly": 34, "monthly": 100})
    context_limit: int = 0


class P4(Upstream):
    """State and routes. `usage_requests` are kept like `requests`."""

    options: P4Options

    def __init__(self, options: P4Options | None = None, clock: Callable[[], float] = time.time) -> None:
        super().__init__(WIRES, clock)
        self.options = options or P4Options()
        self.usage_requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)

    def trace_headers(self) -> dict[str, str]:
        """The gateway lets no header of a provider through."""
        return {"cache-control": "no-cache"}

    def settings(self) -> dict[str, str]:
        """The variables that point a proxy here."""
        return {"PROXY_P4_BASE_URL": f"{self.origin}{API_PATH}", "PROXY_P4_API_KEY": self.options.api_key}

    def add_routes(self, app: web.Application) -> None:
        for path, wire in PATHS.items():
            app.router.add_post(f"{API_PATH}/{path}", self._route(wire))
        app.router.add_get(f"{API_PATH}/usage", guarded(self._usage))
        app.router.add_get(f"{API_PATH}/models", self._models)

    def _route(self, wire: str) -> Any:
        async def answer(request: web.Request) -> web.StreamResponse:
            return await serve_wire(self, wire, request)

        return answer

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response(listed_models(self.clock()))

    async def _usage(self, request: web.Request) -> web.Response:
        self.usage_requests.append(await receive(request))
        check_key(request.headers, "usage", self.options.api_key)
        check_account("", self.options)
        usage = {
            name: {
                "status": "rate-limited" if percent >= 100 else "ok",
                "percent": percent,
                "resetsAt": _timestamp(self.clock() + WINDOWS[name]),
            }
            for name, percent in self.options.usage.items()
        }
        return web.json_response({"workspaceID": "wrk_sandbox", "userID": "usr_sandbox", "usage": usage})


def _timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))
