"""Probes, and the reports of clients, which are dropped."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import web

from proxy.server.request.replies import json_response
from proxy.server.request.state import STATE

#: Most bytes and seconds of a report that are read before the connection is closed; nothing of it is kept.
MAX_REPORT_BYTES, MAX_REPORT_S = 4 * 1024 * 1024, 5.0


async def get_health(_request: web.Request) -> web.Response:
    """Reports that the process is alive; nothing else is checked."""
    return json_response({"ok": True})


async def get_readiness(request: web.Request) -> web.Response:
    """Whether new requests should come here: not after the end was announced."""
    if request.app[STATE].running.draining:
        return json_response({"ready": False}, status=503, headers={"Retry-After": "1"})
    return json_response({"ready": True})


async def get_hello(_request: web.Request) -> web.Response:
    """Answers the request that Claude Code sends at its start, without a credential."""
    return web.Response()


async def post_telemetry(request: web.Request) -> web.Response:
    """Reads and drops a report, so that no client waits or tries again. A long or slow one is not read to its end."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAX_REPORT_S):
            left = MAX_REPORT_BYTES
            while left > 0 and (piece := await request.content.readany()):
                left -= len(piece)
    return web.Response()
