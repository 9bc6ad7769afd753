"""What the simulated P1 tells about its account: the models, and how much of the quota is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from proxy.sandbox.p1_catalog import EFFORTS, MODELS
from proxy.sandbox.p1_headers import check_account
from proxy.sandbox.refusal import Refused, detail

if TYPE_CHECKING:
    from proxy.sandbox.p1 import P1

#: The two windows: position in headers and usage -> (percent used, length in minutes).
WINDOWS = {"primary": (12, 300), "secondary": (3, 10_080)}

#: Seconds to the reset of either window.
RESET_AFTER_S = 600


def quota_headers(now: float) -> dict[str, str]:
    """The windows as response headers; `reset-at` in epoch seconds."""
    headers = {
        "x-codex-credits-has-credits": "false",
        "x-codex-credits-unlimited": "false",
        "x-codex-credits-balance": "0",
    }
    for name, (percent, minutes) in WINDOWS.items():
        headers[f"x-codex-{name}-used-percent"] = f"{percent:.1f}"
        headers[f"x-codex-{name}-window-minutes"] = str(minutes)
        headers[f"x-codex-{name}-reset-after-seconds"] = str(RESET_AFTER_S)
        headers[f"x-codex-{name}-reset-at"] = str(int(now) + RESET_AFTER_S)
    return headers


def _usage(p1: P1) -> dict[str, Any]:
    windows = {
        f"{name}_window": {
            "used_percent": percent,
            "limit_window_seconds": minutes * 60,
            "reset_after_seconds": RESET_AFTER_S,
            "reset_at": int(p1.clock()) + RESET_AFTER_S,
        }
        for name, (percent, minutes) in WINDOWS.items()
    }
    return {
        "plan_type": p1.options.plan,
        "rate_limit": {"allowed": True, "limit_reached": False, **windows},
        "additional_rate_limits": [],
        "credits": {"has_credits": False, "unlimited": False, "balance": "0"},
        "rate_limit_reached_type": None,
    }


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
        return _answer(p1, request, _usage(p1))

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
