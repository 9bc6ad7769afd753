"""The entry of the simulated P1: its routes, its wires and their faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from proxy.sandbox.p1.account import serve_models, serve_usage, serve_workspaces
from proxy.sandbox.p1.media.routes import MEDIA_FAULTS, media_routes
from proxy.sandbox.p1.options import P1Options
from proxy.sandbox.p1.responses import RESPONSES, prepare_responses
from proxy.sandbox.p1.search import serve_search
from proxy.sandbox.p1.socket.faults import SOCKET_WIRE
from proxy.sandbox.p1.socket.upgrade import UPGRADE, serve_upgrade
from proxy.sandbox.p1.socket.upgrade_faults import UPGRADE_FAULTS
from proxy.sandbox.p1.state import CODEX_PATH, P1
from proxy.sandbox.upstream import Simulator


async def _answer(p1: P1, request: web.Request) -> web.StreamResponse:
    return await p1.serve(partial(prepare_responses, p1), request)


def _of_account(
    p1: P1, serve: Callable[[P1, web.Request], Awaitable[web.StreamResponse]]
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A route that is served by the account whose token comes."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await serve(p1.asked(request.headers), request)

    return handle


def _routes(p1: P1) -> list[web.RouteDef]:
    return [
        web.post(f"{CODEX_PATH}/responses", _of_account(p1, _answer)),
        web.get(f"{CODEX_PATH}/responses", _of_account(p1, serve_upgrade), allow_head=False),
        web.post(f"{CODEX_PATH}/alpha/search", _of_account(p1, serve_search)),
        web.get(f"{CODEX_PATH}/models", _of_account(p1, serve_models)),
        web.get("/backend-api/wham/usage", _of_account(p1, serve_usage)),
        web.get("/backend-api/wham/accounts/check", _of_account(p1, serve_workspaces)),
        *media_routes(p1),
        *p1.issuer.routes(),
    ]


P1_SIMULATOR = Simulator(
    "p1", P1, P1Options, (RESPONSES, SOCKET_WIRE), _routes, {UPGRADE: UPGRADE_FAULTS, **MEDIA_FAULTS}
)
