"""Opens sockets: at intervals that the backend accepts, within a time limit, by the rules of the upgrade.

The backend's edge answers bursts of upgrades with an empty 403 although the token is good. A fixed delay would limit
the whole process to one request a second. So the delay is zero until an upgrade is refused, and it shrinks again.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

import aiohttp
from aiohttp import hdrs

from proxy.errors import UpstreamError
from proxy.observe.capture.contract import NULL_CAPTURE, RequestCapture
from proxy.observe.lifecycle import SocketsOpen
from proxy.providers.contract import Services
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.socket.connection import Socket
from proxy.providers.p1_codex.socket.frames import MAX_FRAME_BYTES
from proxy.providers.p1_codex.socket.handshake import (
    FORBIDDEN,
    MAX_BODY_BYTES,
    HandshakeFailed,
    UpgradeRefused,
    failed,
    not_now,
    timed_out,
)
from proxy.providers.upstream.aiohttp_internals import OpenWebSocket, UpgradeResponse
from proxy.providers.upstream.client import client_over, read_error
from proxy.providers.upstream.transport import HeaderObserver


@dataclass(frozen=True, slots=True)
class SocketTimers:
    """Limits in seconds.

    connect    the whole way to an open socket: name, proxy, TLS, upgrade
    validate   how long an idle socket may take to answer a ping before it is used again
    start      from the last piece of the request that could be sent to the first event of the answer
    idle       between two events
    ping       silence after which a ping is sent
    ping_send  how long sending a ping may take
    close      how long closing may take
    rest       requests that can use HTTP do so for this long after an upgrade that hung, a refusal that lasts, or dead
               sockets
    patience   requests that can use HTTP wait no longer than this for the back-off between upgrades
    reap       how often waiting sockets that are too old are looked for
    """

    connect: float = 15.0
    validate: float = 15.0
    start: float = 300.0
    idle: float = 300.0
    ping: float = 30.0
    ping_send: float = 10.0
    close: float = 0.25
    rest: float = 300.0
    patience: float = 2.0
    reap: float = 30.0


#: The delay after the first refusal; anything below it counts as none.
FIRST_S = 1.0
#: Upper bound of the delay.
CAP_S = 8.0
#: This many successes in a row halve the delay.
SUCCESSES = 20


@dataclass(frozen=True, slots=True)
class UpgradeBackoff:
    """Seconds between the starts of two upgrades.

    floor      never less than this, as configured
    delay      grows with refusals
    successes  in a row since the delay last changed
    since      when the delay last grew
    """

    floor: float = 0.0
    delay: float = 0.0
    successes: int = 0
    since: float = -math.inf

    @property
    def seconds(self) -> float:
        return max(self.floor, self.delay)

    def refused(self, started: float, now: float) -> UpgradeBackoff:
        """The back-off after a 403 of the backend. Upgrades that had started before the delay grew belong to the burst
        that made it grow, so they do not change it.

        >>> UpgradeBackoff().refused(0, 1).refused(0, 1).refused(2, 3).seconds
        2.0
        """
        if started <= self.since:
            return self
        delay = min(CAP_S, 2 * self.seconds) if self.seconds else FIRST_S
        return UpgradeBackoff(self.floor, delay, since=now)

    def succeeded(self) -> UpgradeBackoff:
        """The back-off after an upgrade that worked. Only a delay above the floor shrinks."""
        if self.seconds <= self.floor:
            return self
        if self.successes + 1 < SUCCESSES:
            return replace(self, successes=self.successes + 1)
        half = self.seconds / 2
        return replace(self, delay=half if half >= FIRST_S else 0.0, successes=0)


#: A 403 may be the edge's answer to too many upgrades at once: one more attempt follows after about this long.
FORBIDDEN_WAIT_S = 3.0
FORBIDDEN_SPREAD = 0.2

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


def socket_url(base_url: str) -> str:
    """The address of the upgrade. Raises HandshakeFailed.

    >>> socket_url("https://h/x/responses")
    'wss://h/x/responses'
    """
    scheme, separator, rest = base_url.partition("://")
    if not separator or scheme not in _SCHEMES:
        message = f"{LABEL}: a URL of this kind has no WebSocket"
        raise HandshakeFailed(UpstreamError(message, kind="transport", provider=LABEL, repeatable=False))
    return f"{_SCHEMES[scheme]}://{rest}"


def upgrade_digest(url: str, headers: dict[str, str]) -> bytes:
    """A digest of address and token. A socket opened with other ones cannot serve a request."""
    return hashlib.blake2b("\n".join((url, headers.get("authorization", ""))).encode(), digest_size=16).digest()


class ConnectLimiter:
    """Lets upgrades start one after another, `backoff` apart. `evict` runs before each of them."""

    def __init__(
        self,
        floor_s: float,
        *,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        evict: Callable[[], Awaitable[None]],
    ) -> None:
        self.backoff = UpgradeBackoff(floor_s)
        self._now = now
        self._sleep = sleep
        self._evict = evict
        self._lock = asyncio.Lock()
        self._last = -math.inf
        self._ahead = 0  # how many upgrades wait

    async def wait(self, patience_s: float = math.inf) -> float:
        """Waits until an upgrade may start, and returns that moment. Raises HandshakeFailed, at once if possible, when
        the wait would be longer than `patience_s`."""
        latest = self._now() + patience_s
        self._start(self._ahead, latest)
        self._ahead += 1
        try:
            async with self._lock:
                wait = self._start(0, latest) - self._now()
                if wait > 0:
                    await self._sleep(wait)
                await self._evict()
                self._last = self._now()
                return self._last
        finally:
            self._ahead -= 1

    def refused(self, started: float) -> None:
        """Notes a 403 of the backend to an upgrade that started at `started`."""
        self.backoff = self.backoff.refused(started, self._now())

    def succeeded(self) -> None:
        self.backoff = self.backoff.succeeded()

    def _start(self, ahead: int, latest: float) -> float:
        """The time at which an upgrade may start with `ahead` others before it. Raises HandshakeFailed when that is
        after `latest`."""
        now, delay = self._now(), self.backoff.seconds
        start = max(now, self._last + delay) + ahead * delay
        if start > latest:
            raise not_now(f"upgrades keep their distance, and the next may start in {start - now:.1f} s")
        return start


class SocketConnector:
    """Opens sockets over the connections of the shared client."""

    def __init__(
        self, services: Services, limiter: ConnectLimiter, timers: SocketTimers, observe_headers: HeaderObserver
    ) -> None:
        self._services = services
        self._limiter = limiter
        self._timers = timers
        self._observe_headers = observe_headers
        self._numbers = itertools.count(1)
        self._session: aiohttp.ClientSession | None = None
        self._forbidden = False  # whether the last relevant answer was a 403
        self._open = 0

    async def open(
        self, url: str, headers: dict[str, str], *, patience_s: float = math.inf, capture: RequestCapture = NULL_CAPTURE
    ) -> Socket:
        """Opens a fresh socket. Raises HandshakeFailed. Raises UpstreamError when an outgoing proxy fails or the
        certificate is not trusted: neither another attempt nor another transport would help.

        patience_s  how long to wait for the back-off; with a limit, a lasting failure is not tried twice
        capture     records upgrades that fail
        """
        try:
            return await self._attempt(url, headers, patience_s, capture)
        except HandshakeFailed as failure:
            if failure.status != FORBIDDEN or (failure.lasting and patience_s < math.inf):
                raise
        spread = FORBIDDEN_SPREAD * (2 * self._services.random() - 1)
        await self._services.sleep(FORBIDDEN_WAIT_S * (1 + spread))
        return await self._attempt(url, headers, patience_s, capture)

    async def _attempt(self, url: str, headers: dict[str, str], patience_s: float, capture: RequestCapture) -> Socket:
        started = await self._limiter.wait(patience_s)
        forbidden = self._forbidden
        try:
            socket = await self._upgrade(url, headers, capture)
        except HandshakeFailed as failure:
            if failure.status == FORBIDDEN:
                self._forbidden = True
                self._limiter.refused(started)
                # a second refusal came in spite of the back-off: too many upgrades were not the cause
                raise failure.as_lasting(forbidden) from None
            raise
        self._forbidden = False
        self._limiter.succeeded()
        return socket

    async def _upgrade(self, url: str, headers: dict[str, str], capture: RequestCapture) -> Socket:
        host = urlsplit(url).hostname or ""
        try:
            async with asyncio.timeout(self._timers.connect):
                connection = await self._client().ws_connect(
                    socket_url(url),
                    headers=headers,
                    autoping=False,
                    autoclose=False,
                    max_msg_size=MAX_FRAME_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=self._timers.close),
                )
        except TimeoutError as cause:
            late = timed_out(host, self._timers.connect)
            _tell_failure(capture, url, headers, cause, late.error)
            raise late from None
        except (aiohttp.ClientError, OSError, UpgradeRefused) as cause:
            failure = failed(cause, host=host, now=self._services.clock())
            _tell_failure(
                capture, url, headers, cause, failure.error if isinstance(failure, HandshakeFailed) else failure
            )
            raise failure from None
        except UpstreamError as error:
            _tell_failure(capture, url, headers, error, error)
            raise
        if not isinstance(connection, OpenWebSocket):
            raise TypeError(type(connection))
        self._count(1)
        return Socket(
            connection,
            number=next(self._numbers),
            born=asyncio.get_running_loop().time(),
            digest=upgrade_digest(url, headers),
            close_s=self._timers.close,
            closes=partial(self._count, -1),
        )

    def _count(self, by: int) -> None:
        self._open += by
        self._services.happened(SocketsOpen(LABEL, self._open))

    def _client(self) -> aiohttp.ClientSession:
        """A client over the shared connections: it adds no headers of aiohttp, and we check its answers."""
        if self._session is None:
            self._session = client_over(
                self._services.http,
                self._check,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
                response_class=UpgradeResponse,
                ws_response_class=OpenWebSocket,
            )
        return self._session

    async def _check(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Lets a correct 101 pass. Any other answer is a refusal, even a redirect of the credential."""
        response = await handler(request)
        self._observe_headers(request.headers, response.headers)
        if response.status == 101 and _is_plain(response):
            return response
        try:
            body = await read_error(response, MAX_BODY_BYTES) if response.status != 101 else b""
        finally:
            response.close()
        raise UpgradeRefused(0 if response.status == 101 else response.status, response.headers, body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _tell_failure(
    capture: RequestCapture, url: str, headers: dict[str, str], cause: Exception, error: UpstreamError
) -> None:
    """Records an upgrade that opened no socket, as an attempt without a request."""
    attempt = capture.attempt(transport="websocket", method="GET", url=socket_url(url), headers=headers, body=b"")
    if isinstance(cause, UpgradeRefused):
        attempt.answered(cause.status or 101, cause.headers)
        if cause.status:
            attempt.refused(cause.body)
    attempt.failed(error.message)


def _is_plain(response: aiohttp.ClientResponse) -> bool:
    """Whether the answer chooses no extension or subprotocol, since none was offered, and has one answer to the key."""
    chosen = (hdrs.SEC_WEBSOCKET_EXTENSIONS, hdrs.SEC_WEBSOCKET_PROTOCOL)
    accepted = response.headers.getall(hdrs.SEC_WEBSOCKET_ACCEPT, [])
    return len(accepted) == 1 and not any(name in response.headers for name in chosen)
