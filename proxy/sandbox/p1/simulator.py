"""The entry of the simulated P1: its routes, its wires and their faults, and what it tells of the account."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web

from proxy.sandbox.p1.catalog import listed
from proxy.sandbox.p1.headers import check_account
from proxy.sandbox.p1.media.routes import MEDIA_FAULTS, media_routes
from proxy.sandbox.p1.options import P1Options
from proxy.sandbox.p1.responses import RESPONSES, prepare_responses
from proxy.sandbox.p1.search import serve_search
from proxy.sandbox.p1.socket.faults import SOCKET_WIRE
from proxy.sandbox.p1.socket.upgrade import UPGRADE, UPGRADE_FAULTS, serve_upgrade
from proxy.sandbox.p1.state import CODEX_PATH, P1
from proxy.sandbox.upstream import Simulator
from proxy.sandbox.wires.refusal import detail


async def serve_usage(p1: P1, request: web.Request) -> web.Response:
    check_account(request.headers, p1.tokens)
    return web.json_response(p1.options.quota.usage(p1.clock()))


async def serve_models(p1: P1, request: web.Request) -> web.Response:
    if not request.query.get("client_version"):
        raise detail("Missing query parameter: client_version")
    check_account(request.headers, p1.tokens)
    return web.json_response({"models": listed(p1.options.models)}, headers={"etag": '"sandbox"'})


async def serve_workspaces(p1: P1, request: web.Request) -> web.Response:
    """Which backend serves each workspace; the vendor's client sends nothing before it knows."""
    check_account(request.headers, p1.tokens)
    p1.routings += 1
    account = p1.options.account_id
    return web.json_response(
        {"accounts": [_workspace(p1)], "account_ordering": [account], "default_account_id": account}
    )


def _workspace(p1: P1) -> dict[str, Any]:
    options = p1.options
    return {
        "id": options.account_id,
        "name": "Sandbox",
        "structure": "personal",
        "plan_type": options.quota.plan,
        "profile_picture_url": None,
        "is_deactivated": False,
        "can_access_with_session": True,
        "sso_connection_name": None,
        "is_fedramp_compliant_workspace": False,
        "workspace_backend_origin": options.workspace_origin,
        "account_routing_override": options.routing_override,
    }


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
