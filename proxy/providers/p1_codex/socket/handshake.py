"""The errors of failed upgrades. An outgoing proxy's failure is not among them: the shared connections raise it."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from proxy.core.upstream_failures import is_refusal
from proxy.errors import UpstreamError
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.upstream.client import TRUST
from proxy.providers.upstream.transport import refusal_of

#: Code of failures without a status: name, connection, TLS, timeout, an answer that is not an upgrade.
HANDSHAKE = "ws_handshake"

UNAUTHORIZED, FORBIDDEN = 401, 403
#: Refusals that the next upgrade would meet too: the backend, or a middlebox, does not support WebSocket.
LASTING = frozenset({404, 405, 426})

#: What to do when WebSockets do not work.
USE_HTTP = "p1.transport=http goes without WebSocket"

#: How much of a refusal's body is read.
MAX_BODY_BYTES = 1024


class UpgradeRefused(Exception):
    """The backend's answer to the upgrade was not a valid 101; `status` is 0 for a 101 that breaks the protocol."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


class HandshakeFailed(Exception):
    """No socket could be opened. Nothing was sent yet, so the request may use HTTP instead.

    error    as the client would get it; its kind says whether another attempt may help
    status   of the backend's answer, 0 when there was none
    lasting  whether the next upgrade would most likely fail as well, for any request
    """

    def __init__(self, error: UpstreamError, *, status: int = 0, lasting: bool = False) -> None:
        super().__init__(error.message)
        self.error, self.status, self.lasting = error, status, lasting

    def as_lasting(self, lasting: bool) -> HandshakeFailed:
        """This failure with another judgement of the next upgrade."""
        return HandshakeFailed(self.error, status=self.status, lasting=lasting)

    @property
    def reason(self) -> str:
        """The failure, for the log."""
        return f"status {self.status}: {self.error.message}" if self.status else self.error.message


def failed(cause: Exception, *, host: str, now: float) -> HandshakeFailed | UpstreamError:
    """The failure for an exception of the upgrade; an UpstreamError when HTTP would fail too. `now`: epoch seconds."""
    if isinstance(cause, UpgradeRefused):
        return _refused(cause, host, now)
    if isinstance(cause, aiohttp.WSServerHandshakeError):
        return _broken(host)
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return PROFILE.error(f"the certificate of {host} is not trusted; {TRUST}", kind="certificate")
    if isinstance(cause, aiohttp.ClientSSLError):
        return _plain(f"TLS with {host} failed ({type(cause).__name__}); {TRUST}")
    return _plain(f"cannot reach {host} ({type(cause).__name__})")


def timed_out(host: str, seconds: float) -> HandshakeFailed:
    """The failure of an upgrade without an answer in time: some middleboxes swallow upgrades."""
    return _plain(f"no WebSocket to {host} within {seconds * 1000:.0f} ms", lasting=True)


def not_now(words: str) -> HandshakeFailed:
    """The failure of an upgrade that was not tried, since HTTP serves the request better."""
    return _plain(f"no WebSocket now: {words}")


def _broken(host: str) -> HandshakeFailed:
    return _plain(f"the answer of {host} to the upgrade breaks the rules of WebSocket; {USE_HTTP}", lasting=True)


def _plain(words: str, *, lasting: bool = False) -> HandshakeFailed:
    return HandshakeFailed(PROFILE.error(words, kind="transport", code=HANDSHAKE), lasting=lasting)


def _refused(refused: UpgradeRefused, host: str, now: float) -> HandshakeFailed:
    status = refused.status
    if status == 0:
        return _broken(host)
    if not is_refusal(status):
        return _plain(f"unexpected answer of {host} to the upgrade, with status {status}")
    if status in LASTING:
        return HandshakeFailed(_no_websocket(host, status), status=status, lasting=True)
    error = refusal_of(PROFILE, status, refused.headers, refused.body, now=now)
    message = "".join(char if char.isprintable() else " " for char in error.message)
    return HandshakeFailed(error.replaced(message=message), status=status)


def _no_websocket(host: str, status: int) -> UpstreamError:
    """The error of a backend without WebSocket. Its own words would be about a page or a method, and Claude Code takes
    a 404 for a missing model and hides the message."""
    words = f"{host} refused the upgrade to a WebSocket with status {status}; {USE_HTTP}"
    return PROFILE.error(words, kind="invalid_request", status=400 if status == 404 else status, code=HANDSHAKE)
