"""The outgoing proxy for a destination, by the rules of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.

Pure: an environment mapping goes in, decisions come out. Only these variables count; the proxy settings of the desktop
and automatic configuration (PAC, WPAD) are not read.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, unquote, urlsplit

from proxy.core.hiding.secret import Secret

#: scheme of a proxy -> its port when the URL names none
PORTS = {"http": 80, "https": 443}
#: Set by web servers for CGI programs, which get a client's `Proxy` header as HTTP_PROXY: then all variables are
#: ignored.
CGI = "REQUEST_METHOD"

#: scheme of a destination -> its port when the URL names none
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
#: An entry of NO_PROXY with a port; an IPv6 address needs brackets then.
_WITH_PORT = re.compile(r"(?P<host>\[[^\]]*\](?:/\d+)?|[^:\[\]]*):(?P<port>[^:]*)")
_MAX_PORT_DIGITS = 5

_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")


class UnusableProxy(ValueError):
    """A variable that keeps the program from starting. The message names the variable, never its value."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """One outgoing proxy.

    variable       the variable that named it, for messages
    scheme         http, or https for TLS on the way to the proxy
    host           name or address, IPv6 without brackets
    authorization  the value of `Proxy-Authorization`, None without user info
    """

    variable: str
    scheme: str
    host: str
    port: int
    authorization: Secret | None = None

    @property
    def address(self) -> str:
        """Host and port: all of it that may be shown."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL without user info."""
        return f"{self.scheme}://{self.address}"


@dataclass(frozen=True, slots=True)
class Exemptions:
    """The entries of NO_PROXY: `*`, names (which include their subdomains), addresses and blocks of them.

    at_ports  (port, entries for that port only)
    """

    everything: bool = False
    names: tuple[str, ...] = ()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    at_ports: tuple[tuple[int, Exemptions], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Exemptions:
        """Parses a list with commas or blanks. An entry with a port applies to that port alone; one with an invalid
        port matches nothing.

        >>> Exemptions.parse("Example.com, .corp, *.local, 10.0.0.0/8").names
        ('example.com', 'corp', 'local')
        >>> Exemptions.parse("example.com:8443").cover("example.com", 8443)
        True
        """
        entries = text.lower().replace(",", " ").split()
        with_ports = [found for entry in entries if (found := _WITH_PORT.fullmatch(entry))]
        at_ports: dict[int, list[str]] = {}
        for found in with_ports:
            if found["port"].isdecimal() and 0 < len(found["port"]) <= _MAX_PORT_DIGITS:
                at_ports.setdefault(int(found["port"]), []).append(found["host"])
        plain = cls._of([entry for entry in entries if not _WITH_PORT.fullmatch(entry)])
        return replace(plain, at_ports=tuple((port, cls._of(hosts)) for port, hosts in at_ports.items()))

    @classmethod
    def _of(cls, entries: Sequence[str]) -> Exemptions:
        """The exemptions from entries without ports."""
        names, networks = [], []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(re.sub(r"^\[(.*)\]", r"\1", entry), strict=False))
            except ValueError:
                names.append(entry.removeprefix("*.").strip("."))
        return cls("*" in entries, tuple(name for name in names if name), tuple(networks))

    def cover(self, host: str, port: int | None = None) -> bool:
        """Whether a host is reached directly. Names are not resolved, so only addresses match blocks."""
        if self.everything or any(port == at and hosts.cover(host) for at, hosts in self.at_ports):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            host = host.lower().rstrip(".")
            return any(host == name or host.endswith(f".{name}") for name in self.names)
        return any(address in network for network in self.networks)


@dataclass(frozen=True, slots=True)
class OutboundProxies:
    """The outgoing proxies of a process; without arguments there are none.

    http    for http:// and ws://
    https   for https:// and wss://
    exempt  hosts that are reached directly
    """

    http: Proxy | None = None
    https: Proxy | None = None
    exempt: Exemptions = Exemptions()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> OutboundProxies:
        """The proxies of these variables. Upper case wins over lower case; an empty variable counts as not set.

        Raises UnusableProxy. ALL_PROXY counts only if the scheme's own variable is missing, since many users set it to
        a SOCKS proxy in addition.
        """
        if CGI in environment:
            return cls()
        http = _proxy(environment, "HTTP_PROXY") or _proxy(environment, "ALL_PROXY")
        https = _proxy(environment, "HTTPS_PROXY") or _proxy(environment, "ALL_PROXY")
        _, exempt = _found(environment, "NO_PROXY")
        return cls(http, https, Exemptions.parse(exempt))

    def proxy_for(self, url: str) -> Proxy | None:
        """The proxy for this URL; None for a direct connection.

        >>> proxies = OutboundProxies.from_environment({"HTTPS_PROXY": "p:3128", "NO_PROXY": "example.com"})
        >>> proxies.proxy_for("wss://example.org/x").address, proxies.proxy_for("wss://www.example.com/x")
        ('p:3128', None)
        """
        if self.http is None and self.https is None:
            return None
        parts = urlsplit(url)
        proxy = {"http": self.http, "ws": self.http, "https": self.https, "wss": self.https}.get(parts.scheme)
        if proxy is None or self.exempt.cover(parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]):
            return None
        return proxy

    @property
    def addresses(self) -> dict[str, str]:
        """Kind of destination -> host and port of its proxy, for the banner and the log."""
        kinds = {"http": self.http, "https": self.https}
        return {kind: proxy.address for kind, proxy in kinds.items() if proxy is not None}


def _found(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """The name as written in the environment, and the value; ("", "") if it is not set."""
    for variable in (name, name.lower()):
        if value := environment.get(variable, "").strip():
            return variable, value
    return "", ""


def _proxy(environment: Mapping[str, str], name: str) -> Proxy | None:
    variable, value = _found(environment, name)
    if not value:
        return None
    try:
        return _parsed(variable, value)
    except ValueError as error:
        raise UnusableProxy(f"{variable} cannot be used: {error}") from None


def _parsed(variable: str, value: str) -> Proxy:
    """The proxy that a value names. Raises ValueError, whose text shows nothing of the value."""
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("expected a URL such as http://proxy.example:3128") from None
    if parts.scheme.startswith("socks"):
        raise ValueError("SOCKS proxies are not supported; name an http:// or https:// proxy, or empty the variable")
    if parts.scheme not in PORTS:
        raise ValueError("expected a URL that begins with http:// or https://")
    if port == 0 or not _is_host(host):
        raise ValueError("expected a host, and a port from 1 to 65535 if any")
    # A slash or a mark that belongs to the password would turn part of it into the host.
    if parts.path not in ("", "/") or parts.query or parts.fragment or _UNPRINTABLE.search(value):
        raise ValueError("nothing may follow the port; percent-encode special characters in user and password")
    return Proxy(variable, parts.scheme, host, port or PORTS[parts.scheme], _basic(parts))


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _HOST_NAME.fullmatch(host) is not None
    return True


def _basic(parts: SplitResult) -> Secret | None:
    """The user info as Basic credentials."""
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not user and not password:
        return None
    if ":" in user:
        raise ValueError("the user name must not hold a colon")
    try:
        return Secret("Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())
    except UnicodeEncodeError:  # its text would show part of the password
        raise ValueError("user and password must be UTF-8") from None
