"""The shared way to upstreams over HTTP: one client session, bodies sent in pieces, error answers read with bounds."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from proxy.core.media.pieces import Pieces
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.observe.timings import CONNECTING, Timings
from proxy.providers.upstream.aiohttp_internals import BodyResponse, HookedConnector
from proxy.providers.upstream.outgoing_proxy import OutboundConnector, TunnelTimers

CONNECT_TIMEOUT_S = 15.0
#: What to do about failing TLS.
TRUST = "if the network has a certificate authority of its own, SSL_CERT_FILE must name a file with its certificate"
#: Bytes of an error answer that are read; it is given up when it pauses.
MAX_ERROR_BYTES = 64 * 1024
ERROR_IDLE_S = 5.0
#: Slightly shorter than the usual minute of load balancers.
KEEPALIVE_S = 50.0
#: Upstream connections at one time. Admission keeps requests below it; this is a second bound.
MAX_CONNECTIONS = 512
#: A longer response head is not one of our upstreams'.
MAX_HEADER_BYTES = 32 * 1024


@asynccontextmanager
async def client_session(
    proxies: OutboundProxies, *, clock: Callable[[], float] = time.time, timers: TunnelTimers | None = None
) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """The client for all calls to upstreams and issuers, HTTP and WebSocket, through these outgoing proxies. No
    cookies, no redirects unless a call asks for them, no overall time limit (each call brings its own timers)."""
    pool: dict[str, Any] = {"limit": MAX_CONNECTIONS, "keepalive_timeout": KEEPALIVE_S}
    connector = HookedConnector(**pool)
    if proxies.addresses:
        connector = OutboundConnector(proxies, clock=clock, timers=timers or TunnelTimers(), **pool)
    # each call names its own user agent, or none
    async with _client(connector, skip_auto_headers=("User-Agent",)) as session:
        yield session


def client_over(
    session: aiohttp.ClientSession, *outer: aiohttp.ClientMiddlewareType, **options: Any
) -> aiohttp.ClientSession:
    """Another client over the connections of a `client_session`, with its own middlewares and options. Its user must
    close it, which leaves the connections open."""
    connector = session.connector
    if not isinstance(connector, HookedConnector):
        raise TypeError(type(connector))
    return _client(connector, *outer, connector_owner=False, **options)


def _client(connector: HookedConnector, *outer: aiohttp.ClientMiddlewareType, **options: Any) -> aiohttp.ClientSession:
    inner = (connector.check_answer,) if isinstance(connector, OutboundConnector) else ()
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        middlewares=(*outer, *inner),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        **{"response_class": BodyResponse, **options},
    )


async def post(
    session: aiohttp.ClientSession, url: str, data: Any, headers: Mapping[str, str], timings: Timings | None
) -> aiohttp.ClientResponse:
    """The answer to a POST; a redirect is one. `timings` get to know a connection that is opened for it."""
    token = CONNECTING.set(timings)
    try:
        return await session.post(url, data=data, headers=headers, allow_redirects=False)
    finally:
        CONNECTING.reset(token)


async def read_error(response: aiohttp.ClientResponse, limit: int = MAX_ERROR_BYTES) -> bytes:
    """The beginning of an error body, or as much as arrived when it is long, slow or breaks off."""
    body = bytearray()
    try:
        while len(body) < limit:
            async with asyncio.timeout(ERROR_IDLE_S):
                chunk = await response.content.readany()
            if not chunk:
                break
            body += chunk
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    return bytes(body[:limit])


#: Up to this size bodies are sent at once, longer ones in pieces of it.
SENT_PIECE = 128 * 1024


def in_pieces(
    body: bytes | Pieces, headers: dict[str, str], timer: asyncio.Timeout, timeout_s: float
) -> tuple[bytes | AsyncGenerator[bytes | memoryview, None], dict[str, str]]:
    """The body and headers of a POST for aiohttp: a long body is sent in pieces. A file would be too, but aiohttp
    copies it at once on the loop, 30 ms for 60 MB.

    timer, timeout_s  rescheduled after each piece
    """
    if isinstance(body, Pieces):
        return _sent(body, timer, timeout_s), headers
    if len(body) <= SENT_PIECE:
        return body, headers
    pieces = (memoryview(body)[at : at + SENT_PIECE] for at in range(0, len(body), SENT_PIECE))
    return _sent(pieces, timer, timeout_s), {**headers, "Content-Length": str(len(body))}


async def _sent(
    body: Iterable[bytes | memoryview], timer: asyncio.Timeout, timeout_s: float
) -> AsyncGenerator[bytes | memoryview, None]:
    """Yields the pieces. After each, other tasks run, even if the reader is as fast as we are, and the timer is
    rescheduled: a large body may take minutes on a slow line."""
    for piece in body:
        yield piece
        with contextlib.suppress(RuntimeError):  # the answer came before the request's end
            timer.reschedule(asyncio.get_running_loop().time() + timeout_s)
        await asyncio.sleep(0)
