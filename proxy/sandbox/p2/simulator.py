"""The entry of the simulated P2: its routes, its wires and their faults."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from aiohttp import web

from proxy.sandbox.p2.catalog import listed_models
from proxy.sandbox.p2.chat import STREAM, WHOLE, prepare_chat
from proxy.sandbox.p2.headers import check_caller
from proxy.sandbox.p2.options import P2Options
from proxy.sandbox.p2.services import serve_fetch, serve_search
from proxy.sandbox.p2.state import API_PATH, P2
from proxy.sandbox.upstream import Simulator


async def _serve_models(p2: P2, request: web.Request) -> web.Response:
    return _account_answer(p2, request, listed_models())


async def _serve_usages(p2: P2, request: web.Request) -> web.Response:
    """The quota of the week, and of the window of five hours, in the form that the vendor's own client reads."""
    week, window = (_quota(used, p2.clock() + hours * 3600) for used, hours in ((3, 168), (12, 5)))
    limit = {"window": {"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"}, "detail": window}
    return _account_answer(p2, request, {"usage": week, "limits": [limit]})


def _account_answer(p2: P2, request: web.Request, body: Mapping[str, Any]) -> web.Response:
    check_caller(request.headers, p2.tokens, p2.options.agents)
    return web.json_response(body, headers=p2.trace_headers())


def _quota(used: int, resets: float) -> dict[str, Any]:
    time_text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(resets))
    return {"limit": "100", "used": str(used), "remaining": str(100 - used), "resetTime": time_text}


def _routes(p2: P2) -> list[web.RouteDef]:
    return [
        web.post(f"{API_PATH}/chat/completions", partial(p2.serve, partial(prepare_chat, p2))),
        web.post(f"{API_PATH}/search", partial(serve_search, p2)),
        web.post(f"{API_PATH}/fetch", partial(serve_fetch, p2)),
        web.get(f"{API_PATH}/models", partial(_serve_models, p2)),
        web.get(f"{API_PATH}/usages", partial(_serve_usages, p2)),
        *p2.issuer.routes(),
    ]


P2_SIMULATOR = Simulator("p2", P2, P2Options, (STREAM, WHOLE), _routes)
