"""The entry of the simulated P1: its routes, its wires and their faults."""

from __future__ import annotations

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


def _routes(p1: P1) -> list[web.RouteDef]:
    return [
        web.post(f"{CODEX_PATH}/responses", partial(p1.serve, partial(prepare_responses, p1))),
        web.get(f"{CODEX_PATH}/responses", partial(serve_upgrade, p1), allow_head=False),
        web.post(f"{CODEX_PATH}/alpha/search", partial(serve_search, p1)),
        web.get(f"{CODEX_PATH}/models", partial(serve_models, p1)),
        web.get("/backend-api/wham/usage", partial(serve_usage, p1)),
        web.get("/backend-api/wham/accounts/check", partial(serve_workspaces, p1)),
        *media_routes(p1),
        *p1.issuer.routes(),
    ]


P1_SIMULATOR = Simulator(
    "p1", P1, P1Options, (RESPONSES, SOCKET_WIRE), _routes, {UPGRADE: UPGRADE_FAULTS, **MEDIA_FAULTS}
)
