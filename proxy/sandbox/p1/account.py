"""What the simulated P1 tells of the account beside the answers: models, usage, and where its workspace is served."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from proxy.sandbox.p1.catalog import listed
from proxy.sandbox.p1.headers import check_account
from proxy.sandbox.p1.state import P1
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
