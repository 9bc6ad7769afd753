"""What the simulated P3 tells of the account and its models beside the answers."""

from __future__ import annotations

from aiohttp import web

from proxy.sandbox.p3.catalog import listed_models
from proxy.sandbox.p3.headers import check_bearer
from proxy.sandbox.p3.state import P3


async def serve_models(p3: P3, request: web.Request) -> web.Response:
    check_bearer(request.headers, p3.tokens)
    return web.json_response(listed_models(int(p3.clock())), headers=p3.trace_headers())
