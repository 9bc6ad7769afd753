"""The entry of the simulated P1: its routes, its wires and their faults."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from proxy.sandbox.p1.catalog import EFFORTS, MODELS
from proxy.sandbox.p1.headers import check_account
from proxy.sandbox.p1.options import P1Options
from proxy.sandbox.p1.responses import RESPONSES, prepare_responses
from proxy.sandbox.p1.search import serve_search
from proxy.sandbox.p1.socket.faults import SOCKET_WIRE
from proxy.sandbox.p1.socket.upgrade import UPGRADE, serve_upgrade
from proxy.sandbox.p1.socket.upgrade_faults import UPGRADE_FAULTS
from proxy.sandbox.p1.state import CODEX_PATH, P1
from proxy.sandbox.upstream import Simulator
from proxy.sandbox.wires.refusal import detail


async def _serve_usage(p1: P1, request: web.Request) -> web.Response:
    check_account(request.headers, p1.tokens)
    return web.json_response(p1.options.quota.usage(p1.clock()))


async def _serve_models(p1: P1, request: web.Request) -> web.Response:
    if not request.query.get("client_version"):
        raise detail("Missing query parameter: client_version")
    check_account(request.headers, p1.tokens)
    models = [
        {
            "slug": slug,
            "display_name": slug.upper(),
            "visibility": "list",
            "supported_in_api": True,
            "use_responses_lite": model.lite,
            "context_window": 272_000,
            "supported_reasoning_levels": [{"effort": effort} for effort in EFFORTS[1:]],
        }
        for slug, model in MODELS.items()
    ]
    return web.json_response({"models": models}, headers={"etag": '"sandbox"'})


def _routes(p1: P1) -> list[web.RouteDef]:
    return [
        web.post(f"{CODEX_PATH}/responses", partial(p1.serve, partial(prepare_responses, p1))),
        web.get(f"{CODEX_PATH}/responses", partial(serve_upgrade, p1), allow_head=False),
        web.post(f"{CODEX_PATH}/alpha/search", partial(serve_search, p1)),
        web.get(f"{CODEX_PATH}/models", partial(_serve_models, p1)),
        web.get("/backend-api/wham/usage", partial(_serve_usage, p1)),
        *p1.issuer.routes(),
    ]


P1_SIMULATOR = Simulator("p1", P1, P1Options, (RESPONSES, SOCKET_WIRE), _routes, {UPGRADE: UPGRADE_FAULTS})
