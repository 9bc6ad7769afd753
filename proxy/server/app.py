"""`create_app`: the application, ready to run alone or to be mounted under a prefix of another one."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from proxy.config import Config
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.errors import ProxyError
from proxy.observe.lifecycle import Log, NullLog, NullRecorder, Recorder
from proxy.providers.contract import Services, Tuning
from proxy.providers.registry import PROVIDERS
from proxy.providers.upstream.client import client_session
from proxy.providers.upstream.outgoing_proxy import TunnelTimers
from proxy.providers.upstream.tokenizer import Tokenizer, TokenizerLimits
from proxy.server import guard
from proxy.server.admission import Admission
from proxy.server.exchange import Family, as_proxy_error, error_response, id_headers, unforeseen
from proxy.server.routes.messages import post_count_tokens, post_messages
from proxy.server.routes.models import get_health, get_models
from proxy.server.routes.openai import CHAT_PATH, RESPONSES_PATH, get_responses, post_chat_completions, post_responses
from proxy.server.sessions import Sessions
from proxy.server.state import REQUEST_ID, STATE, State

HEALTH = "/healthz"
#: Nothing of ours reads a body with aiohttp's own methods, which this would limit; ours is `Config.max_body_bytes`.
_NO_LIMIT = 0


def create_app(
    config: Config | Callable[[], Config],
    *,
    config_dir: Path,
    log: Log | None = None,
    recorder: Recorder | None = None,
    proxies: OutboundProxies | None = None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
    packed_bodies: bool = False,
    tuning: Tuning | None = None,
) -> web.Application:
    """The proxy as an aiohttp application.

    config      the settings, or a function that gives them as they are now (the command line re-reads its file)
    config_dir  where credentials live: `<config_dir>/p1/auth.json`
    log         where records go; nowhere by default
    recorder    who watches requests; nobody by default
    proxies     the outgoing proxies of all calls, `OutboundProxies.from_environment(os.environ)` for those of the
                process; none by default
    clock, sleep, chance  time and randomness, for tests
    packed_bodies  the runner has `auto_decompress=False`, so that bodies are unpacked here, with bounds
    tuning      timers and limits of providers other than the defaults, for tests

    Nothing is opened here: connections and threads begin when the application starts and end when it is cleaned up. It
    reads no environment and installs no signal handler.
    """
    current = config if callable(config) else lambda: config
    state = State(
        config=current,
        log=log or NullLog(),
        recorder=recorder or NullRecorder(),
        known=tuple(entry.catalog for entry in PROVIDERS),
        sessions=Sessions(clock),
        admission=Admission(current),
        clock=clock,
        packed=packed_bodies,
        openai=current().p1_responses_api,
    )

    async def providers(_app: web.Application) -> AsyncIterator[None]:
        tuned = tuning or Tuning()
        tokenizer = Tokenizer(tuned.of(TokenizerLimits))
        async with (
            client_session(proxies or OutboundProxies(), clock=clock, timers=tuned.of(TunnelTimers)) as http,
            client_session(OutboundProxies()) as direct,
        ):
            services = Services(
                current, config_dir, http, direct, tokenizer, state.log, clock, sleep, chance, tuning=tuned
            )
            async with _running(state, services):
                yield
        tokenizer.close()

    app = web.Application(middlewares=[_edge], client_max_size=_NO_LIMIT)
    app[STATE] = state
    app.cleanup_ctx.append(providers)
    app.on_shutdown.append(_drain)
    _add_routes(app, openai=state.openai)
    return app


@asynccontextmanager
async def _running(state: State, services: Services) -> AsyncIterator[None]:
    """All providers, from the start of the application to its end."""
    state.providers.update(
        {entry.catalog.label: entry.build(services) for entry in PROVIDERS if entry.build is not None}
    )
    yield
    for provider in state.providers.values():
        await provider.close()
    state.providers.clear()


def _add_routes(app: web.Application, *, openai: bool) -> None:
    app.router.add_get(HEALTH, get_health)
    app.router.add_get("/v1/models", get_models)
    app.router.add_post("/v1/messages", post_messages)
    app.router.add_post("/v1/messages/count_tokens", post_count_tokens)
    if openai:
        app.router.add_post(CHAT_PATH, post_chat_completions)
        app.router.add_post(RESPONSES_PATH, post_responses)
        app.router.add_get(RESPONSES_PATH, get_responses, allow_head=False)


async def _drain(app: web.Application) -> None:
    await app[STATE].running.drain()


@web.middleware
async def _edge(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """The outermost layer: ids, guard, and every error as an answer in the caller's format."""
    state = request.app[STATE]
    request[REQUEST_ID] = request_id = str(uuid.uuid4())
    family: Family = "openai" if state.openai and request.path.endswith((CHAT_PATH, RESPONSES_PATH)) else "messages"
    try:
        if request.match_info.handler is not get_health:
            guard.check(request, state.config())
        response = await handler(request)
    except web.HTTPException as error:
        response = _routing_error(request, error, family)
    except ConnectionError:  # the client left
        raise
    except Exception as error:
        known = as_proxy_error(error) or unforeseen(state, request_id, error)
        response = error_response(known, request_id, family)
    if not response.prepared:
        for name, value in id_headers(request_id).items():
            response.headers.setdefault(name, value)
    return response


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
    return error_response(
        ProxyError(f"{where}: {error.reason}", kind="invalid_request", status=error.status), request_id, family
    )
