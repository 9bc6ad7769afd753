"""What the simulated P1 tells about its account: the models, and how much of the quota is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from proxy.sandbox.p1.catalog import EFFORTS, MODELS
from proxy.sandbox.p1.headers import check_account
from proxy.sandbox.wires.refusal import Refused, detail

if TYPE_CHECKING:
    from proxy.sandbox.p1.simulator import P1


def _models() -> dict[str, Any]:
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
    return {"models": models}


def add_account_routes(p1: P1, app: web.Application) -> None:
    async def usage(request: web.Request) -> web.Response:
        return _answer(p1, request, p1.options.quota.usage(p1.clock()))

    async def models(request: web.Request) -> web.Response:
        if not request.query.get("client_version"):
            return detail("Missing query parameter: client_version").response()
        return _answer(p1, request, _models(), {"etag": '"sandbox"'})

    app.router.add_get("/backend-api/wham/usage", usage)
    app.router.add_get("/backend-api/codex/models", models)


def _answer(p1: P1, request: web.Request, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    try:
        check_account(request.headers, p1.tokens)
    except Refused as refused:
        return refused.response()
    return web.json_response(body, headers=headers)
