"""What the simulated P1 tells about its account: the models, and how much of the quota is used."""

from __future__ import annotations

from aiohttp import web

from proxy.sandbox.p1.catalog import EFFORTS, MODELS
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
