"""What a socket that could not be opened means: which error. Trouble with an outgoing proxy is none of it: that is
no failure of the backend's, and the shared connections tell it themselves."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from proxy.errors import UpstreamError
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import WIRE
from proxy.providers.transport import refusal_of

#: What has no status: name, connection, TLS, time, an answer that is no upgrade.
HANDSHAKE = "ws_handshake"

#: What one reads of the body behind a refusal.
MAX_BODY_BYTES = 1024


class Refused(Exception):
    """An answer to the upgrade that is no good: `status` 0 when it is a 101 that breaks the rules."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


class HandshakeFailed(Exception):
    """No socket. Nothing was asked yet, so the request may go over HTTP instead.

    error   as the client would get it; its kind says whether another attempt may help
    status  of the backend's answer, 0 when there was none
    hung    whether nothing came at all, for as long as one waits: some boxes on the way swallow upgrades
    """

    def __init__(self, error: UpstreamError, *, status: int = 0, hung: bool = False) -> None:
        super().__init__(error.message)
        self.error, self.status, self.hung = error, status, hung


def failed(cause: Exception, *, host: str, now: float) -> HandshakeFailed:
    """The failure behind an exception of the upgrade. `now`: epoch seconds."""
    if isinstance(cause, Refused):
        return _refused(cause, host, now)
    if isinstance(cause, aiohttp.WSServerHandshakeError):
        return _plain(f"the answer of {host} to the upgrade breaks the rules of WebSocket")
    return _plain(f"cannot reach {host} ({type(cause).__name__})")


def timed_out(host: str, seconds: float) -> HandshakeFailed:
    return _plain(f"no WebSocket to {host} within {seconds * 1000:.0f} ms", hung=True)


def _plain(words: str, *, hung: bool = False) -> HandshakeFailed:
    error = UpstreamError(f"{LABEL}: {words}", kind="transport", provider=LABEL, code=HANDSHAKE)
    return HandshakeFailed(error, hung=hung)


def _refused(refused: Refused, host: str, now: float) -> HandshakeFailed:
    status = refused.status
    if status == 0:
        return _plain(f"the answer of {host} to the upgrade breaks the rules of WebSocket")
    if status < 400:
        return _plain(f"unexpected answer of {host} to the upgrade, with status {status}")
    error = refusal_of(WIRE, status, refused.headers, refused.body, now=now)
    error.message = "".join(char if char.isprintable() else " " for char in error.message)
    return HandshakeFailed(error, status=status)
