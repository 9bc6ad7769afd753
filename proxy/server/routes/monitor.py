"""What goes on: once as a snapshot, or followed as server-sent events. A person with a browser is given the page."""

from __future__ import annotations

import asyncio

from aiohttp import web

from proxy.errors import ProxyError
from proxy.server.callers.callers import CALLER
from proxy.server.request.families import WATCHING
from proxy.server.request.replies import TIMING_HEADER, has_left, id_headers
from proxy.server.request.state import REQUEST_ID, STATE, TIMINGS, AppState
from proxy.server.routes import page
from proxy.server.serving.stream import HEADERS

#: Nothing new for this long: something is sent all the same, so that nobody in between gives up.
KEEPALIVE_S = 5.0


async def get_monitor(request: web.Request) -> web.StreamResponse:
    """`{"version": 1, "snapshot": {…}}`; the page for a browser, where it is on."""
    state = request.app[STATE]
    if page.wants_html(request):
        if not state.config().monitor_page:
            raise ProxyError(
                "the monitor's page is off: PROXY_MONITOR_PAGE=1, or monitor.page in config.json, turns it on at the"
                " next start. Programs are given JSON here",
                kind="no_route",
            )
        return await page.index(request)
    body = await state.watchers.encoded(state.monitor.snapshot())
    return web.Response(body=body, content_type="application/json")


async def get_events(request: web.Request) -> web.StreamResponse:
    """The same about once a second while something changes, each as the data of an event; a comment now and then while
    nothing does. Who reads slowly is sent less. Raises BusyError."""
    state = request.app[STATE]
    head = {**id_headers(request[REQUEST_ID]), TIMING_HEADER: request[TIMINGS].header()}
    response = web.StreamResponse(headers={**HEADERS, **head, **WATCHING.headers})
    with state.watchers.one(state.monitor):
        await response.prepare(request)
        if request.method != "HEAD":
            await _follow(request, response, state)
    return response


async def _follow(request: web.Request, response: web.StreamResponse, state: AppState) -> None:
    """Until the client leaves, reads nothing any more, or the application ends."""
    watchers, now = state.watchers, asyncio.get_running_loop().time
    sent, written = 0, now()
    while not (watchers.closed or has_left(request)) and state.callers.still(request.get(CALLER)):
        number, body = await watchers.newest(state.monitor)
        data = b"data: %b\n\n" % body if number != sent else b":\n\n" if now() - written >= KEEPALIVE_S else b""
        if data:
            if not await _written(request, response, data):
                return
            sent, written = number, now()
        await watchers.pause()


async def _written(request: web.Request, response: web.StreamResponse, data: bytes) -> bool:
    """False for a client that is gone, or has read nothing for too long: then its connection is closed."""
    try:
        async with asyncio.timeout(request.app[STATE].timers.stall):
            await response.write(data)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        return False
    return True
