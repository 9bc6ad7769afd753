"""Applies the outgoing proxies: every connection of a session passes here, whatever it is for.

A TLS destination is reached through a tunnel (CONNECT), any other by a request in absolute form; so is the upgrade to a
WebSocket. A proxy's failure is an error of its own kind: never repeated by us, and never a reason to go directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import hdrs

from proxy.core.outgoing_proxies import OutboundProxies, Proxy
from proxy.errors import UpstreamError
from proxy.providers.upstream.aiohttp_internals import Connect, Connection, HookedConnector, lead_through_proxy
from proxy.providers.upstream.failures import parse_retry_after

AUTHENTICATION_REQUIRED = 407

#: Why a proxy could not be reached; anything else is "no connection".
_WHY = {aiohttp.ClientConnectorDNSError: "its name is not known", aiohttp.ClientSSLError: "TLS with it failed"}


@dataclass(frozen=True, slots=True)
class TunnelTimers:
    """Limits in seconds.

    connect  reaching the proxy, its answer, and TLS with the destination together. Less than callers allow for a
             connection, so that a silent proxy is the failure that the user sees
    """

    connect: float = 12.0


class OutboundConnector(HookedConnector):
    """Opens connections through the proxies. A failure here comes before the destination has received anything.

    clock  epoch seconds, for a `Retry-After` that is a date
    """

    def __init__(
        self, proxies: OutboundProxies, *, clock: Callable[[], float], timers: TunnelTimers, **options: Any
    ) -> None:
        super().__init__(**options)
        self._tunnel_timers = timers
        self._outbound = proxies
        self._clock = clock

    async def connect_for(self, request: aiohttp.ClientRequest, connect: Connect) -> Connection:
        """A connection for a request. Raises aiohttp's errors, and UpstreamError for a proxy's."""
        proxy = self._outbound.proxy_for(str(request.url))
        if proxy is None:
            return await connect()
        headers = {str(hdrs.PROXY_AUTHORIZATION): proxy.authorization.reveal()} if proxy.authorization else {}
        lead_through_proxy(request, proxy.url, headers)
        try:
            async with asyncio.timeout(self._tunnel_timers.connect):
                return await connect()
        except TimeoutError:
            words = f"opened no connection within {self._tunnel_timers.connect * 1000:.0f} ms; check {proxy.variable}"
            raise _failure(proxy, words) from None
        except aiohttp.ClientHttpProxyError as error:
            raise self._refusal(proxy, request, error) from None
        except aiohttp.ClientConnectorError as error:
            if (error.host, error.port) != (proxy.host, proxy.port):
                raise  # the tunnel is open, and the destination at its end failed
            why = next((words for kind, words in _WHY.items() if isinstance(error, kind)), "no connection")
            raise _failure(proxy, f"could not be reached ({why}); check {proxy.variable}") from None
        except (aiohttp.ClientError, OSError):
            words = f"opened no tunnel to {_place(request)}: its answer broke off or is not HTTP"
            raise _failure(proxy, f"{words}; check {proxy.variable}") from None

    async def check_answer(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """A middleware: in absolute form the proxy's own answer comes in place of the destination's."""
        response = await handler(request)
        if response.status == AUTHENTICATION_REQUIRED and not request.is_ssl():
            proxy = self._outbound.proxy_for(str(request.url))
            if proxy is not None:
                response.close()
                raise _wants_authentication(proxy)
        return response

    def _refusal(
        self, proxy: Proxy, request: aiohttp.ClientRequest, error: aiohttp.ClientHttpProxyError
    ) -> UpstreamError:
        if error.status == AUTHENTICATION_REQUIRED:
            return _wants_authentication(proxy)
        hint = error.headers.get(hdrs.RETRY_AFTER) if error.headers is not None else None
        words = (
            f"refused the tunnel to {_place(request)} (status {error.status});"
            " ask its operator, or list the host in NO_PROXY if it can be reached directly"
        )
        # A proxy's rule stays the same however often a client asks, unless it says that it passes.
        wait = parse_retry_after(hint, now=self._clock())
        return _failure(proxy, words, retry_after=wait, final=wait is None)


def _place(request: aiohttp.ClientRequest) -> str:
    return f"{request.url.host_subcomponent}:{request.url.port}"


def _wants_authentication(proxy: Proxy) -> UpstreamError:
    words = f"wants authentication (status 407): check the user and password in {proxy.variable}"
    return _failure(proxy, words, kind="outbound_auth")


def _failure(
    proxy: Proxy, words: str, *, kind: str = "outbound", retry_after: float | None = None, final: bool = False
) -> UpstreamError:
    message = f"The outgoing proxy {proxy.address} {words}."
    return UpstreamError(message, kind=kind, repeatable=False, retry_after=retry_after, final=final)
