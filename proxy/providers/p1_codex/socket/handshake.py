"""What a socket that could not be opened means: which error. Trouble with an outgoing proxy is none of it: that is
no failure of the backend's, and the shared connections tell it themselves."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
from aiohttp import hdrs
from multidict import CIMultiDict, CIMultiDictProxy

from proxy.errors import UpstreamError
from proxy.providers.p1_codex.catalog import LABEL
from proxy.providers.p1_codex.failures import WIRE
from proxy.providers.upstream.client import TRUST
from proxy.providers.upstream.transport import refusal_of

#: What has no status: name, connection, TLS, time, an answer that is no upgrade.
HANDSHAKE = "ws_handshake"

UNAUTHORIZED, FORBIDDEN = 401, 403
#: Refusals that the next upgrade would meet as well: the way to the backend, or a box on it, knows no WebSocket.
LASTING = frozenset({404, 405, 426})

#: What to do where sockets do not work.
WITHOUT = "p1.transport=http goes without WebSocket"

#: Headers that are lists of tokens, and the one that has to be among them.
TOKENS = {hdrs.UPGRADE: "websocket", hdrs.CONNECTION: "upgrade"}

#: What one reads of the body behind a refusal.
MAX_BODY_BYTES = 1024


class Answer(aiohttp.ClientResponse):
    """The answer to an upgrade, in a form that the library understands: it takes the lists for single tokens."""

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        headers = CIMultiDict(super().headers)
        for name, token in TOKENS.items():
            given = ",".join(headers.getall(name, [])).lower().split(",")
            if token in map(str.strip, given):
                headers[name] = token
        return CIMultiDictProxy(headers)


class Refused(Exception):
    """An answer to the upgrade that is no good: `status` 0 when it is a 101 that breaks the rules."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


class HandshakeFailed(Exception):
    """No socket. Nothing was asked yet, so the request may go over HTTP instead.

    error    as the client would get it; its kind says whether another attempt may help
    status   of the backend's answer, 0 when there was none
    lasting  whether the next upgrade would most likely fare no better, whoever asks for it
    """

    def __init__(self, error: UpstreamError, *, status: int = 0, lasting: bool = False) -> None:
        super().__init__(error.message)
        self.error, self.status, self.lasting = error, status, lasting

    @property
    def reason(self) -> str:
        """What went wrong, for the log."""
        return f"status {self.status}: {self.error.message}" if self.status else self.error.message


def failed(cause: Exception, *, host: str, now: float) -> HandshakeFailed:
    """The failure behind an exception of the upgrade. `now`: epoch seconds."""
    if isinstance(cause, Refused):
        return _refused(cause, host, now)
    if isinstance(cause, aiohttp.WSServerHandshakeError):
        return _broken(host)
    if isinstance(cause, aiohttp.ClientSSLError):
        return _plain(f"TLS with {host} failed ({type(cause).__name__}); {TRUST}")
    return _plain(f"cannot reach {host} ({type(cause).__name__})")


def timed_out(host: str, seconds: float) -> HandshakeFailed:
    """Nothing came at all, for as long as one waits: some boxes on the way swallow upgrades."""
    return _plain(f"no WebSocket to {host} within {seconds * 1000:.0f} ms", lasting=True)


def not_now(words: str) -> HandshakeFailed:
    """An upgrade that was not tried, since the request is better off on another way."""
    return _plain(f"no WebSocket now: {words}")


def _broken(host: str) -> HandshakeFailed:
    return _plain(f"the answer of {host} to the upgrade breaks the rules of WebSocket; {WITHOUT}", lasting=True)


def _plain(words: str, *, lasting: bool = False) -> HandshakeFailed:
    error = UpstreamError(f"{LABEL}: {words}", kind="transport", provider=LABEL, code=HANDSHAKE)
    return HandshakeFailed(error, lasting=lasting)


def _refused(refused: Refused, host: str, now: float) -> HandshakeFailed:
    status = refused.status
    if status == 0:
        return _broken(host)
    if status < 400:
        return _plain(f"unexpected answer of {host} to the upgrade, with status {status}")
    error = refusal_of(WIRE, status, refused.headers, refused.body, now=now)
    error.message = "".join(char if char.isprintable() else " " for char in error.message)
    return HandshakeFailed(error, status=status, lasting=status in LASTING)
