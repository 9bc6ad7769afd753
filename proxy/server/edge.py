"""The outermost layer of every request: its id, the guard, and every error as an answer in the caller's format."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import Awaitable, Callable, Iterator
from urllib.parse import quote

from aiohttp import web

from proxy.config import Config
from proxy.errors import ProxyError
from proxy.observe.timings import Timings
from proxy.server.callers.callers import CALLER
from proxy.server.request import guard
from proxy.server.request.families import MEDIA, MESSAGES, WATCHING, ClientRoute, Family
from proxy.server.request.inquiry import TIMING_HEADER, id_headers
from proxy.server.request.replies import as_proxy_error, error_response, is_loss, unforeseen
from proxy.server.request.state import REQUEST_ID, ROUTE, STATE, TIMINGS, AppState
from proxy.settings import rows_of

#: How long a body is read, and dropped, after an answer that did not wait for it; and how many bytes of it.
LINGER_S = 10.0

#: Status of the answer to a client that left, for the logs of others: if raised, it would count as our failure.
_LEFT = 499

#: The end of the base URL of one API's clients, but not of the other's.
_VERSION = "/v1"

#: field of `Config` that turns a route on -> its row.
_SWITCHES = {setting.field: setting for setting in rows_of(Config)}


@web.middleware
async def edge(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    state = request.app[STATE]
    request[TIMINGS] = timings = Timings()
    request[REQUEST_ID] = request_id = str(uuid.uuid4())
    route = state.routes.get(request.match_info.route)
    family = _family_of(state, request, route)
    try:
        if route is None or route.guarded:
            keyless = route is not None and route.keyless
            caller = guard.check(
                request, state.config(), family.key_places, state.callers, family.key_cure, keyless=keyless
            )
            if caller is not None:
                request[CALLER] = caller
        if family is WATCHING:
            guard.check_watcher(request, state.config(), state.callers)
        if route is not None:
            request[ROUTE] = route
        response = await handler(request)
    except web.HTTPException as error:
        response = _routing_error(request, error, family)
    except Exception as error:
        if is_loss(error, request):
            return web.Response(status=_LEFT)
        known = as_proxy_error(error) or unforeseen(state.log, request_id, error)
        response = error_response(known, request_id, family)
    if state.running.draining:
        # Tells the client not to send its next request on this connection; too late for an answer that has begun.
        response.force_close()
    if not response.prepared:
        timing = {TIMING_HEADER: timings.header()}
        for name, value in {**id_headers(request_id), **timing, **family.headers}.items():
            response.headers.setdefault(name, value)
        if not request.content.is_eof():
            await _end_after(request, response, state.config().max_body_bytes)
    return response


async def _end_after(request: web.Request, response: web.StreamResponse, most: int) -> None:
    """Sends an answer from before the end of the body, and ends the connection, since the rest of the body would be
    read as the next request. Some clients read only after sending all, so reads from them for a while: a connection
    that is closed with unread bytes is reset, and the answer lost."""
    response.force_close()
    with contextlib.suppress(ConnectionError, TimeoutError, web.RequestPayloadError, web.HTTPException, ValueError):
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(LINGER_S):
            while most > 0 and (piece := await request.content.readany()):
                most -= len(piece)
    if request.transport is not None and not request.content.is_eof():
        request.transport.close()


def _family_of(state: AppState, request: web.Request, route: ClientRoute | None) -> Family:
    """The family that answers. An unknown path that was most likely meant for a route gets that route's API. A path
    next to the routes of images and audio, or of a route that is off, gets the form that clients of either API read."""
    if route is not None:
        return route.family
    meant = _meant(state, request.path)
    if meant is not None:
        return MEDIA if meant in state.off else meant.family
    adjacent = any(_folder(request.path) == _folder(one.path) for one in _all(state) if one.family is MEDIA)
    return MEDIA if adjacent else MESSAGES


def _all(state: AppState) -> Iterator[ClientRoute]:
    return itertools.chain(state.routes.values(), state.off)


def _meant(state: AppState, path: str) -> ClientRoute | None:
    """The route with which a path ends, with its version or without: meant by a client with a wrong base URL."""
    whole = (one for one in _all(state) if path.endswith(one.path))
    bare = (one for one in _all(state) if path.endswith(one.path.removeprefix(_VERSION)))
    return next(itertools.chain(whole, bare), None)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _hint(state: AppState, path: str) -> str:
    """The remedy for an unknown path, where we know it."""
    meant = _meant(state, path)
    if meant is None:
        return ""
    if meant not in state.off:
        return f"; did you mean {meant.path}? Look at the base URL of your client"
    setting = _SWITCHES[meant.needs]
    variable = setting.variables[0]
    return f"; {meant.path} is off: {variable}=1, or {setting.key} in config.json, turns it on at the next start"


def _routing_error(request: web.Request, error: web.HTTPException, family: Family) -> web.StreamResponse:
    request_id = request[REQUEST_ID]
    where = f"{request.method} {quote(request.path[:200], safe='/')}"
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        response = error_response(ProxyError(f"{where}: use {allowed}", kind="wrong_method"), request_id, family)
        response.headers["Allow"] = allowed
        return response
    if error.status == 404:
        message = f"No route for {where}{_hint(request.app[STATE], request.path)}"
        return error_response(ProxyError(message, kind="no_route"), request_id, family)
    known = ProxyError(f"{where}: {error.reason}", kind="invalid_request", status=error.status)
    return error_response(known, request_id, family)
