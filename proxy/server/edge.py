"""The outermost layer of every request: its id, the guard, and every error as an answer in the caller's format."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from aiohttp import web

from proxy.errors import ProxyError
from proxy.server import guard
from proxy.server.exchange import as_proxy_error, error_response, id_headers, is_loss, unforeseen
from proxy.server.families import MEDIA, MESSAGES, ClientRoute, Family
from proxy.server.state import REQUEST_ID, ROUTE, STATE, AppState

#: What is answered to a client that left, for the records of others: raised, its loss would count as a failure of ours.
_LEFT = 499


@web.middleware
async def edge(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    state = request.app[STATE]
    request[REQUEST_ID] = request_id = str(uuid.uuid4())
    route = state.routes.get(request.match_info.route)
    family = _family_of(state, request, route)
    try:
        if route is None or route.guarded:
            guard.check(request, state.config(), family.key_places)
        if route is not None:
            request[ROUTE] = route
        response = await handler(request)
    except web.HTTPException as error:
        response = _routing_error(request, error, family)
    except Exception as error:
        if is_loss(error, request):
            return web.Response(status=_LEFT)
        known = as_proxy_error(error) or unforeseen(state, request_id, error)
        response = error_response(known, request_id, family)
    if not response.prepared:
        for name, value in {**id_headers(request_id), **family.headers}.items():
            response.headers.setdefault(name, value)
        _leave_no_body(request, response)
    return response


def _leave_no_body(request: web.Request, response: web.StreamResponse) -> None:
    """Ends the connection behind an answer that was given before the whole body came: what still comes of it would
    stand where the next request is looked for."""
    if not request.content.is_eof():
        response.force_close()


def _family_of(state: AppState, request: web.Request, route: ClientRoute | None) -> Family:
    """What is no route but ends like one was most likely meant for it, by a client whose base URL is wrong; and what
    stands beside those of images and audio, for that API: it has more than is served here."""
    if route is not None:
        return route.family
    path, known = request.path, state.routes.values()
    meant = (one.family for one in known if path.endswith(one.path))
    beside = (MEDIA for one in known if one.family is MEDIA and _folder(path) == _folder(one.path))
    return next(itertools.chain(meant, beside), MESSAGES)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _routing_error(request: web.Request, error: web.HTTPException, family: Family) -> web.StreamResponse:
    request_id = request[REQUEST_ID]
    where = f"{request.method} {quote(request.path[:200], safe='/')}"
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        response = error_response(ProxyError(f"{where}: use {allowed}", kind="wrong_method"), request_id, family)
        response.headers["Allow"] = allowed
        return response
    if error.status == 404:
        return error_response(ProxyError(f"No route for {where}", kind="no_route"), request_id, family)
    known = ProxyError(f"{where}: {error.reason}", kind="invalid_request", status=error.status)
    return error_response(known, request_id, family)
