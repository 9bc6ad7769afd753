"""The checks before every route that is not exempt.

One danger is a web page in the user's browser. It can send requests to loopback without seeing the answer, and with a
rebound host name see that too. So the Host must be one of ours, an Origin must be our own, and bodies must be declared
as JSON, which no page can do without a preflight (and there is no CORS to allow it).

The other danger is a listener that is wider than its owner thinks: a program that embeds the application decides where
it listens. Without a key or an acknowledgement only connections to loopback, or to the configured address, are served.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from aiohttp import HttpVersion11, web

from proxy.config import Config
from proxy.core.media.content_types import essence
from proxy.errors import ProxyError, RequestError
from proxy.server.callers.callers import Callers
from proxy.server.callers.keys import CallerKey
from proxy.settings import name_of_authority

#: Schemes of web pages, and of files that were saved from the web.
_WEB = frozenset({"http", "https", "ws", "wss", "ftp", "file", "data", "blob"})

_AUTHORITY_END = re.compile(r"[/?#]")

_CONTAINER_HOSTS = frozenset({"host.docker.internal", "host.containers.internal"})

#: Maximum number of hosts and addresses whose check is remembered.
MAX_HOSTS = 64

#: Headers that may occur only once, since readers may disagree about a second one.
_SINGLE = ("Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Origin")


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """A header that may carry the caller's key, after a scheme or alone."""

    header: str
    scheme: str = ""

    def key_in(self, request: web.BaseRequest) -> str:
        value = request.headers.get(self.header, "")
        if not self.scheme:
            return value
        scheme, _, key = value.partition(" ")
        if scheme.lower() != self.scheme.lower():
            return ""
        return _password(key) if self.scheme == BASIC else key.strip()


#: The scheme of browsers, which ask their user for a name and a password: the key is the password.
BASIC = "Basic"

BEARER = KeyPlace("Authorization", "Bearer")
API_KEY = KeyPlace("x-api-key")
PASSWORD = KeyPlace("Authorization", BASIC)


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def check(
    request: web.BaseRequest,
    config: Config,
    key_places: Sequence[KeyPlace],
    callers: Callers,
    key_cure: str,
    *,
    keyless: bool = False,
) -> CallerKey | None:
    """The caller's key that the request came with, None for the one of the settings, or if none is needed. Raises
    ProxyError if the request must not be served.

    key_cure  where the user puts the key, shown if it is missing
    keyless   whether no key is needed
    """
    for name in _SINGLE:
        if len(request.headers.getall(name, ())) > 1:
            raise RequestError(f"the header {name} occurs more than once")
    guarded = config.api_key is not None or callers.guard
    anywhere = guarded or config.allow_remote_unauthenticated
    _check_listener(request, config, anywhere)
    host = request.headers.get("Host")
    if host is None and request.version >= HttpVersion11:
        raise RequestError("a request of HTTP/1.1 needs a Host header")
    for asked in (host, None if request.raw_path.startswith("/") else _authority(request)):
        if asked is not None and not _host_is_ours(asked, config.allowed_hosts, config.bind_address, anywhere):
            raise ProxyError(
                f"Host {_shown(asked)} is not allowed; add it to PROXY_ALLOWED_HOSTS if it is yours", kind="permission"
            )
    _check_browser(request, host)
    return _check_key(request, config, key_places, callers, key_cure) if guarded and not keyless else None


def check_watcher(request: web.BaseRequest, config: Config, callers: Callers) -> None:
    """Checks requests to routes that show all requests, after `check`: without a caller key only this machine may ask.
    Raises ProxyError."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    guarded = config.api_key is not None or callers.guard
    if not guarded and isinstance(peer, tuple) and not _is_local(peer[0]):
        raise ProxyError("without an `api_key` this is shown on this machine only", kind="permission")


def _is_local(host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _check_listener(request: web.BaseRequest, config: Config, anywhere: bool) -> None:
    local = request.transport.get_extra_info("sockname") if request.transport is not None else None
    # sockets of other kinds have no address
    if isinstance(local, tuple) and not _is_meant(local[0], config.bind_address, anywhere):
        raise ProxyError(
            f"without an `api_key` this proxy is meant for {_open_places(config)} and was reached at {local[0]};"
            " listen there only, set a key, or `allow_remote_unauthenticated`",
            kind="permission",
        )


def _open_places(config: Config) -> str:
    """The addresses that are served without a key. One that means all interfaces is never the one that is reached."""
    address = ipaddress.ip_address(config.bind_address)
    own = "" if address.is_loopback or address.is_unspecified else f" and {config.bind_address}"
    return f"loopback{own}"


@lru_cache(MAX_HOSTS)
def _is_meant(host: str, bind_address: str, anywhere: bool) -> bool:
    """Whether the proxy may be reached at an IP address: at all with a key, or if an open listener was acknowledged
    (`anywhere`). Raises ValueError for anything but an address."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if anywhere or host == bind_address:
        return True
    address = getattr(address, "ipv4_mapped", None) or address  # an IPv6 socket that accepts IPv4 too
    return address.is_loopback or str(address) == bind_address


def _shown(value: str) -> str:
    """A foreign header value, made fit for a message."""
    return "".join(char if char.isprintable() else "?" for char in value[:100])


def _authority(request: web.BaseRequest) -> str | None:
    """The authority in the target of a request for a forwarding proxy, None if there is none."""
    scheme, separator, rest = request.raw_path.partition("://")
    return _AUTHORITY_END.split(rest, maxsplit=1)[0] if separator and scheme.isalpha() else None


@lru_cache(MAX_HOSTS)
def _host_is_ours(host: str, allowed: tuple[str, ...], bind_address: str, anywhere: bool) -> bool:
    if "*" in allowed:
        return True
    name = name_of_authority(host)
    if name in allowed:
        return True
    if name == "localhost" or name.endswith(".localhost") or name in _CONTAINER_HOSTS or name == bind_address:
        return True
    try:
        return _is_meant(name, bind_address, anywhere)
    except ValueError:
        return False


def _check_browser(request: web.BaseRequest, host: str | None) -> None:
    """Refuses requests of web pages by headers that only browsers send. Editor web views have their own schemes and are
    allowed. Raises ProxyError."""
    if request.headers.get("Sec-Fetch-Site", "").lower() in ("cross-site", "same-site"):
        raise ProxyError("requests from other web sites are not served", kind="permission")
    origin = request.headers.get("Origin")
    if origin is None:
        return
    scheme, separator, place = origin.lower().partition("://")
    if not separator or not place or (scheme in _WEB and place != (host or "").lower()):
        raise ProxyError(f"Origin {_shown(origin)} is not allowed", kind="permission")


def _check_key(
    request: web.BaseRequest, config: Config, places: Sequence[KeyPlace], callers: Callers, cure: str
) -> CallerKey | None:
    sent = [_utf8(place.key_in(request)) for place in places]
    if config.api_key is not None:
        wanted = config.api_key.reveal().encode()
        if any(hmac.compare_digest(key, wanted) for key in sent):
            return None
    caller = callers.find(sent)
    if caller is None:
        which = "a caller's key" if config.api_key is None else "its key (PROXY_API_KEY)"
        came = "another one came" if any(sent) else "none came"
        raise ProxyError(f"this proxy wants {which}, and {came}: {cure}", kind="sign_in")
    return caller


def _utf8(key: str) -> bytes:
    """The bytes of a key that was read as UTF-8: some clients send Latin-1, as `fetch` of Node.js does."""
    sent = key.encode("utf-8", "surrogateescape")
    try:
        sent.decode()
    except ValueError:
        return sent.decode("latin-1").encode()
    return sent


def check_json(request: web.BaseRequest) -> None:
    """Raises ProxyError (415) for a body that is not declared as JSON."""
    value = request.headers.get("Content-Type", "")
    kind = value if value == "application/json" else essence(value)
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        said = f"not {_shown(kind)}" if kind else "and none was given"
        raise ProxyError(f"the Content-Type must be application/json, {said}", kind="media_type")
