"""An issuer's endpoints, from its OpenID Connect discovery document: fetched, checked and kept for an hour.

Credentials go to these addresses, so they must have the issuer's own origin, hence https if the issuer has it (the
settings allow http on loopback only).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import aiohttp

from proxy.auth.http import IssuerFailure, TokenClient, TokenResponse, repeated
from proxy.auth.text import printable

DOCUMENT_PATH = "/.well-known/openid-configuration"
TIMEOUT = aiohttp.ClientTimeout(total=20.0, connect=10.0)
MAX_DOCUMENT_BYTES = 256 * 1024

#: How long a document is kept.
KEPT_S = 3600.0

#: Waits before the second and the third try; repeating the request is harmless.
WAITS_S = (0.5, 2.0)

#: member -> what its list must hold, for a browser sign-in with PKCE by a program without a secret.
NEEDED = {
    "response_types_supported": {"code"},
    "grant_types_supported": {"authorization_code", "refresh_token"},
    "code_challenge_methods_supported": {"S256"},
    "token_endpoint_auth_methods_supported": {"none"},
}

_PORTS = {"https": 443, "http": 80}


class Endpoints(NamedTuple):
    """The endpoints of a browser sign-in."""

    authorization: str
    token: str


class Discovery:
    """The document of one issuer. `clock` returns seconds; `label` names the provider in errors.

    Both methods raise IssuerFailure, and UpstreamError if an outgoing proxy failed.
    """

    def __init__(
        self,
        label: str,
        issuer: str,
        session: aiohttp.ClientSession,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._label = label
        self._issuer = issuer
        self._client = TokenClient(label, session, timeout=TIMEOUT, most_bytes=MAX_DOCUMENT_BYTES)
        self._clock = clock
        self._sleep = sleep
        self._kept: Mapping[str, Any] = {}
        self._kept_at = 0.0

    async def token_endpoint(self) -> str:
        """The address where tokens are renewed."""
        return self._endpoint(await self._document(), "token_endpoint")

    async def sign_in_endpoints(self) -> Endpoints:
        """The addresses of a browser sign-in, after checking that the issuer supports it."""
        document = await self._document()
        found = Endpoints(*(self._endpoint(document, name) for name in ("authorization_endpoint", "token_endpoint")))
        for name, needed in NEEDED.items():
            listed = document.get(name)
            lacking = needed.difference(listed) if isinstance(listed, list) and _texts(listed) else needed
            if lacking:
                raise self._failure(f"its discovery document lacks {', '.join(sorted(lacking))} in {name}")
        return found

    async def _document(self) -> Mapping[str, Any]:
        if not (self._kept and 0 <= self._clock() - self._kept_at < KEPT_S):
            self._kept, self._kept_at = await self._fetched(), self._clock()
        return self._kept

    async def _fetched(self) -> Mapping[str, Any]:
        answer = await repeated(self._ask, waits_s=WAITS_S, sleep=self._sleep)
        if not answer.ok:
            raise self._failure(f"its discovery document could not be fetched, the answer was {answer.reason()}")
        issuer = answer.data.get("issuer")
        if issuer != self._issuer:
            named = f"is of {printable(issuer)}" if isinstance(issuer, str) else "names no issuer"
            raise self._failure(f"the discovery document of {self._issuer} {named}")
        return answer.data

    async def _ask(self) -> TokenResponse:
        return await self._client.get_from_issuer(f"{self._issuer}{DOCUMENT_PATH}")

    def _endpoint(self, document: Mapping[str, Any], name: str) -> str:
        found = document.get(name)
        if not isinstance(found, str) or not _is_of(found, self._issuer):
            raise self._failure(f"the {name} in its discovery document is not an address of {self._issuer}")
        return found

    def _failure(self, why: str) -> IssuerFailure:
        return IssuerFailure(self._label, why, sent=False)


def _texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_of(url: str, issuer: str) -> bool:
    """Whether an address has the issuer's origin, and nothing in it that hides another one."""
    if not url.isascii() or not url.isprintable() or set(url) & set(" \\"):
        return False
    try:
        parts = urlsplit(url)
        return "@" not in parts.netloc and not parts.fragment and _origin(parts) == _origin(urlsplit(issuer))
    except ValueError:
        return False


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
