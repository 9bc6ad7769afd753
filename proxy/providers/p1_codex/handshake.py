"""What a socket that could not be opened means: which error, and whether the request may go over HTTP instead."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from proxy.errors import UpstreamError
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import WIRE
from proxy.providers.transport import refusal_of

#: The way to the backend goes through a proxy that wants a password, or that refuses it. Neither another attempt nor
#: another transport is a remedy, and both would hide the cause.
PROXY_AUTH, PROXY_TUNNEL = "ws_proxy_auth", "ws_proxy_tunnel"
#: Everything else that has no status: name, connection, TLS, time, an answer that is no upgrade.
HANDSHAKE = "ws_handshake"

#: What one reads of the body behind a refusal.
MAX_BODY_BYTES = 1024

PROXY_AUTH_STATUS = 407


class Refused(Exception):
    """An answer to the upgrade that is no good: `status` 0 when it is a 101 that breaks the rules."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


class HandshakeFailed(Exception):
    """No socket. Nothing was asked yet.

    error     as the client would get it; its kind says whether another attempt may help
    status    of the backend's answer, 0 when there was none
    fallback  whether the request may go over HTTP instead
    hung      whether nothing came at all, for as long as one waits: some boxes on the way swallow upgrades
    """

    def __init__(self, error: UpstreamError, *, status: int = 0, fallback: bool = True, hung: bool = False) -> None:
        super().__init__(error.message)
        self.error, self.status, self.fallback, self.hung = error, status, fallback, hung


def failed(cause: Exception, *, host: str, now: float) -> HandshakeFailed:
    """The failure behind an exception of the upgrade. `now`: epoch seconds."""
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return _proxy_failed(cause.status)
    if isinstance(cause, aiohttp.ClientProxyConnectionError):
        return _proxy_failed(0)
    if isinstance(cause, Refused):
        return _refused(cause, host, now)
    if isinstance(cause, aiohttp.WSServerHandshakeError):
        return _plain(f"the answer of {host} to the upgrade breaks the rules of WebSocket")
    return _plain(f"cannot reach {host} ({type(cause).__name__})")


def timed_out(host: str, seconds: float) -> HandshakeFailed:
    return _plain(f"no WebSocket to {host} within {seconds * 1000:.0f} ms", hung=True)


def _plain(words: str, code: str = HANDSHAKE, *, fallback: bool = True, hung: bool = False) -> HandshakeFailed:
    error = UpstreamError(
        f"{LABEL}: {words}", kind="transport", provider=LABEL, code=code, repeatable=code == HANDSHAKE
    )
    return HandshakeFailed(error, fallback=fallback, hung=hung)


def _proxy_failed(status: int) -> HandshakeFailed:
    if status == PROXY_AUTH_STATUS:
        return _plain("the outbound proxy asks for a user name and password", PROXY_AUTH, fallback=False)
    words = f" (status {status})" if status else ""
    return _plain(f"the outbound proxy does not lead to the upstream{words}", PROXY_TUNNEL, fallback=False)


def _refused(refused: Refused, host: str, now: float) -> HandshakeFailed:
    status = refused.status
    if status == PROXY_AUTH_STATUS:
        return _proxy_failed(status)
    if status == 0:
        return _plain(f"the answer of {host} to the upgrade breaks the rules of WebSocket")
    if status < 400:
        return _plain(f"unexpected answer of {host} to the upgrade, with status {status}")
    error = refusal_of(WIRE, status, refused.headers, refused.body, now=now)
    error.message = "".join(char if char.isprintable() else " " for char in error.message)
    return HandshakeFailed(error, status=status)
