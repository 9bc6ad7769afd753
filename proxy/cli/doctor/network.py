"""The way to the services: outgoing proxies, certificates, and whether each configured host answers.

Only the hosts of the settings are asked, each once, with a plain GET that carries no credential; the user sees which
before. With `--offline` none is.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from proxy.cli.account import NOT_SIGNED_IN
from proxy.cli.config_file import proxies_of
from proxy.cli.doctor.certificates import check_certificates, issuer_in, issuer_of
from proxy.cli.doctor.finding import Finding, Group, Setup, fail, note, ok, warn
from proxy.config import ConfigError
from proxy.core.outgoing_proxies import CGI, OutboundProxies
from proxy.errors import UpstreamError
from proxy.providers.upstream.aiohttp_internals import Connect, Connection
from proxy.providers.upstream.outgoing_proxy import OutboundConnector, TunnelTimers
from proxy.settings import is_loopback, rows_of, url

#: Seconds for one host: name, connection, TLS and the head of the answer.
ASK_S = 8.0
#: Less, so that a silent outgoing proxy is named as the cause.
TUNNEL_S = 6.0
#: Seconds for a name: a system waits some ten for a dead name server, and cannot be interrupted.
NAME_S = 5.0
#: Seconds for the issuer of an untrusted host.
ISSUER_S = 3.0
#: Slower answers are reported: requests begin with such a wait.
SLOW_S = 3.0
#: Clocks: tokens are renewed five minutes before their end, so with more they are sent when they have ended.
SKEW_WARN_S, SKEW_FAIL_S = 60.0, 300.0
_USER_AGENT = "model-proxy-doctor"


@dataclass(frozen=True, slots=True)
class HostPlace:
    """A host of the settings.

    names  the settings that lead there
    url    one of them, whole
    """

    origin: str
    url: str
    names: tuple[str, ...]

    @property
    def shown(self) -> str:
        return urlsplit(self.origin).netloc


def places(setup: Setup) -> list[HostPlace]:
    """The hosts of the signed-in providers; those of all served ones while there are none."""
    served = [entry for entry in setup.context.providers if entry.build is not None]
    signed_in = {one.entry.label for one in setup.known if one.state != NOT_SIGNED_IN}
    found: dict[str, HostPlace] = {}
    for entry in (entry for entry in served if entry.label in signed_in or not signed_in):
        for setting in rows_of(entry.settings) if entry.settings is not None else ():
            if setting.parse is url:
                address = getattr(setup.config.section(setting.section), setting.field)
                parts = urlsplit(address)
                origin = f"{parts.scheme}://{parts.netloc}"
                known = found.get(origin, HostPlace(origin, address, ()))
                found[origin] = HostPlace(origin, known.url, (*known.names, setting.name))
    return list(found.values())


def check_proxies(setup: Setup) -> Sequence[Finding]:
    """Checks the variables of outgoing proxies."""
    if CGI in setup.environment:
        why = "web servers set it for CGI programs, so proxy variables are not believed"
        return [note(f"{CGI} is set: no outgoing proxy is used", why, setup.unset(CGI))]
    try:
        proxies = proxies_of(setup.environment)
    except ConfigError as error:
        variable = error.message.partition(" ")[0]
        cure = f"{setup.export(variable, 'http://proxy.example:3128')}, or {setup.unset(variable)}"
        return [fail(f"{variable} names no usable proxy", error.message, cure)]
    if not proxies.addresses:
        return [ok("no outgoing proxy is set")]
    exempt = setup.environment.get("NO_PROXY") or setup.environment.get("no_proxy") or "(empty)"
    return [
        ok(f"outgoing proxy for {kind}: {place}", f"not for NO_PROXY={exempt}")
        for kind, place in proxies.addresses.items()
    ]


class _Names(AbstractResolver):
    """Looks names up in threads that do not delay the end of the program. Raises OSError."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[ResolveResult]] = loop.create_future()

        def settle(rows: list[Any], error: OSError | None) -> None:
            if found.done():
                return
            if error is not None:
                found.set_exception(error)
            else:
                found.set_result([_resolved(host, row) for row in rows])

        def look_up() -> None:
            rows: list[Any] = []
            error = None
            try:
                rows = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
            except OSError as failed:
                error = failed
            with suppress(RuntimeError):  # no longer awaited
                loop.call_soon_threadsafe(settle, rows, error)

        threading.Thread(target=look_up, daemon=True).start()
        try:
            async with asyncio.timeout(NAME_S):
                return await found
        except TimeoutError:
            raise OSError(f"no answer of a name server within {NAME_S:g} s") from None

    async def close(self) -> None:
        """Does nothing: nothing is held."""


def _resolved(host: str, row: Any) -> ResolveResult:
    family, _, proto, _, address = row
    return ResolveResult(
        hostname=host, host=address[0], port=address[1], family=family, proto=proto, flags=socket.AI_NUMERICHOST
    )


class _SeenIssuer(OutboundConnector):
    """Remembers the issuer of the connected host's certificate."""

    issuer = ""

    async def connect_for(self, request: aiohttp.ClientRequest, connect: Connect) -> Connection:
        connection = await super().connect_for(request, connect)
        transport = connection.transport
        if transport is not None and (tls := transport.get_extra_info("ssl_object")) is not None:
            self.issuer = issuer_of(tls.getpeercert() or {}) or issuer_in(tls.getpeercert(True) or b"")
        return connection


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The answer of a host: the status, the `Date` header, seconds, and the issuer of its certificate."""

    status: int
    date: str
    took_s: float
    issuer: str


async def ask(address: str, proxies: OutboundProxies, *, verify: bool = True) -> HostAnswer:
    """One GET without a credential. Raises aiohttp's errors, TimeoutError, UpstreamError for an outgoing proxy.

    verify  False: accepts any certificate, to find out its issuer
    """
    connector = _SeenIssuer(proxies, clock=time.time, timers=TunnelTimers(TUNNEL_S), resolver=_Names())
    options: dict[str, Any] = {} if verify else {"ssl": False}
    begun = time.monotonic()
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), middlewares=(connector.check_answer,)
    ) as session:
        headers = {"User-Agent": _USER_AGENT}
        timeout = aiohttp.ClientTimeout(total=ASK_S)
        async with session.get(address, headers=headers, timeout=timeout, allow_redirects=False, **options) as answer:
            took = time.monotonic() - begun
            return HostAnswer(answer.status, answer.headers.get("Date", ""), took, connector.issuer)


async def check_hosts(setup: Setup) -> Sequence[Finding]:
    """Asks all hosts at the same time."""
    asked = places(setup)
    listed = ", ".join(place.shown for place in asked)
    if setup.offline:
        return [note("no host is asked (--offline)", f"it would be {listed}")]
    try:
        proxies = proxies_of(setup.environment)
    except ConfigError:
        return []  # reported above; without the wanted proxy no host is asked
    setup.say(f"asks, without a credential, the hosts of your settings and no others: {listed}")
    setup.asked += [place.shown for place in asked]
    return await asyncio.gather(*(_reached(place, proxies, setup) for place in asked))


async def _reached(place: HostPlace, proxies: OutboundProxies, setup: Setup) -> Finding:
    direct = is_loopback(urlsplit(place.url).hostname or "")
    way = OutboundProxies() if direct else proxies
    try:
        answer = await ask(place.url, way)
    except (aiohttp.ClientError, TimeoutError, OSError, UpstreamError) as error:
        return await _unreached(place, error, way, setup)
    _compare_clock(place, answer, setup)
    by = f", certificate by {answer.issuer}" if answer.issuer else ""
    proxy = way.proxy_for(place.url)
    through = f", through {proxy.address}" if proxy is not None else ""
    what = f"{place.shown} answers ({answer.status}, {answer.took_s:.1f} s{by}{through})"
    if answer.status >= 500:
        return warn(what, "the service is in trouble, or something between", "try again later; see its status page")
    if answer.took_s > SLOW_S:
        return note(what, "that is slow: each new connection begins with this wait")
    return ok(what)


async def _unreached(place: HostPlace, error: Exception, proxies: OutboundProxies, setup: Setup) -> Finding:
    names = " and ".join(place.names)
    settings = f"check {names} ({setup.program} config show)"
    if isinstance(error, UpstreamError):
        return fail(f"{place.shown} is not reached", error.message, _proxy_cure(place, proxies, setup))
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        why = "its name is not known: no network, a name server that fails, or a name misspelt in the settings"
        return fail(f"{place.shown} is not reached", why, f"getent hosts {urlsplit(place.url).hostname}; {settings}")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return await _untrusted(place, error, proxies, setup)
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return fail(f"{place.shown} speaks no TLS", f"{error}", settings)
    if isinstance(error, TimeoutError):
        why = f"no answer within {ASK_S:g} s: a firewall, or a network that wants an outgoing proxy"
        return fail(f"{place.shown} is not reached", why, setup.export("HTTPS_PROXY", "http://proxy.example:3128"))
    refused = isinstance(error, aiohttp.ClientConnectorError)
    why = str(error.os_error.strerror or error) if isinstance(error, aiohttp.ClientConnectorError) else str(error)
    return fail(f"{place.shown} is not reached", why or type(error).__name__, settings if refused else "try again")


def _proxy_cure(place: HostPlace, proxies: OutboundProxies, setup: Setup) -> str:
    proxy = proxies.proxy_for(place.url)
    variable = proxy.variable if proxy is not None else "HTTPS_PROXY"
    return f"{setup.export(variable, 'http://user:password@proxy.example:3128')}, or {setup.unset(variable)}"


async def _untrusted(place: HostPlace, error: Exception, proxies: OutboundProxies, setup: Setup) -> Finding:
    """Names the issuer of an untrusted certificate: often a company's proxy, which looks into TLS."""
    try:
        async with asyncio.timeout(ISSUER_S):
            issuer = (await ask(place.url, proxies, verify=False)).issuer
    except (aiohttp.ClientError, TimeoutError, OSError, UpstreamError):
        issuer = ""
    who = f"issued by {issuer}" if issuer else "its issuer cannot be read"
    reason = getattr(getattr(error, "certificate_error", None), "verify_message", "")
    why = f"{who}; {reason}. If your network inspects TLS, trust its certificate authority"
    cure = setup.export("SSL_CERT_FILE", "/path/to/all-authorities.pem")
    return fail(f"{place.shown} has a certificate that is not trusted", why, cure)


def _compare_clock(place: HostPlace, answer: HostAnswer, setup: Setup) -> None:
    try:
        date = parsedate_to_datetime(answer.date)
    except (TypeError, ValueError):
        return
    setup.skews[place.shown] = setup.clock() - date.timestamp()


def check_clock(setup: Setup) -> Sequence[Finding]:
    """Compares this machine's clock with the median of the hosts' clocks, whatever the time zones."""
    if not setup.skews:
        return [note("the clock was not compared", "no host sent the time")]
    skew = sorted(setup.skews.values())[len(setup.skews) // 2]
    if abs(skew) <= SKEW_WARN_S:
        return [ok("the clock agrees with the hosts")]
    what = f"the clock is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
    why = "tokens look ended, or are sent when they have ended" if abs(skew) > SKEW_FAIL_S else "tokens end at a time"
    return [(fail if abs(skew) > SKEW_FAIL_S else warn)(what, why, _SET_CLOCK.get(sys.platform, _SET_CLOCK["linux"]))]


_SET_CLOCK = {
    "linux": "sudo timedatectl set-ntp true",
    "darwin": "sudo sntp -sS time.apple.com",
    "win32": "w32tm /resync",
}

NETWORK = Group("network", "Network", (check_proxies, check_certificates), (check_hosts,))
CLOCK = Group("clock", "Clock", (check_clock,))
