"""The tokens of one account: issued, rotated, revoked. Each issuer decides on their claims and on how they are
refused."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, TypeVar

from proxy.sandbox.oauth.jwt import unsigned_jwt
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import Refused

V = TypeVar("V")

#: A test that signs in a thousand times is plausible, more is a leak: the oldest tokens are dropped.
MAX_TOKENS = 10_000

LIVE = "live"


class Tokens:
    """Issues tokens. Times are epoch seconds, from the clock of the host. A refresh token is good once: `unknown` and
    `used` are the reasons for refusing one."""

    unknown = "unknown"
    used = "used"

    def __init__(self, lifetime_s: int, host: Host) -> None:
        self.lifetime_s = lifetime_s
        self.host = host
        self._access: dict[str, float] = {}  # token -> epoch seconds of its expiry
        self._refresh: dict[str, str] = {}  # token -> LIVE | reason for refusing it

    @property
    def issued(self) -> tuple[str, ...]:
        """Access and refresh tokens, oldest first; signed-out access tokens are not among them."""
        return (*self._access, *self._refresh)

    def times(self, lifetime_s: int | None) -> dict[str, int]:
        """The time claims of a token issued now; None: the usual lifetime."""
        now = int(self.host.clock())
        return {"iat": now, "exp": now + (self.lifetime_s if lifetime_s is None else lifetime_s)}

    def new_pair(self, claims: Mapping[str, Any], refresh_prefix: str = "") -> dict[str, Any]:
        """`{"access_token","refresh_token","token_type","expires_in"}`; both tokens are good from now on.

        `claims` hold `times`. An access token that is already expired comes with an `expires_in` of 1, since a client
        may refuse zero or less.
        """
        access = unsigned_jwt({**claims, "jti": secrets.token_hex(8)})
        refresh = f"{refresh_prefix}{secrets.token_urlsafe(32)}"
        remember(self._access, access, float(claims["exp"]), MAX_TOKENS)
        remember(self._refresh, refresh, LIVE, MAX_TOKENS)
        return {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": max(claims["exp"] - claims["iat"], 1),
        }

    def stored(self, issued: Mapping[str, Any], lifetime_s: int | None, expires_ms: int | None) -> dict[str, Any]:
        """A token response as a client stores it: `{"access","refresh","expires"}`, expires in epoch ms.

        `expires_ms` replaces the stored time only, so that a record can look fresh while its token is refused.
        """
        lifetime = self.lifetime_s if lifetime_s is None else lifetime_s
        expires = int((self.host.clock() + lifetime) * 1000) if expires_ms is None else expires_ms
        return {"access": issued["access_token"], "refresh": issued["refresh_token"], "expires": expires}

    def issue(self, lifetime_s: int | None = None, holder: str = "") -> dict[str, Any]:
        """A new token response, see `new_pair`; `holder` is the device that its tokens are bound to."""
        raise NotImplementedError

    def granted(self, holder: str, nonce: str | None = None) -> dict[str, Any]:
        """The token response of a new sign-in; `nonce` goes into its identity token."""
        return self.issue(holder=holder)

    def rotate(self, refresh: str, holder: str = "") -> dict[str, Any]:
        """The token response to a refresh token. Raises Refused."""
        state = self.spend(refresh)
        if state != LIVE:
            raise self.refused(state)
        return self.issue(holder=holder)

    def refused(self, state: str) -> Refused:
        """The refusal of a refresh token in this state."""
        raise NotImplementedError

    def accepts(self, access: str) -> bool:
        """Whether a request with this bearer is served now."""
        return self._access.get(access, 0.0) > self.host.clock()

    def spend(self, refresh: str) -> str:
        """Marks a LIVE token as `used`; returns its earlier state, LIVE or the reason for refusing it."""
        state = self._refresh.get(refresh, self.unknown)
        if state == LIVE:
            self._refresh[refresh] = self.used
        return state

    def revoke(self, token: str) -> None:
        """Signs out one token, access or refresh. Unknown ones are no error."""
        self._access.pop(token, None)
        if token in self._refresh:
            self._refresh[token] = self.unknown

    def revoke_access(self) -> None:
        """Revokes every access token; refresh tokens live on."""
        self._access.clear()

    def revoke_refresh(self, code: str = "refresh_token_expired") -> None:
        """Refuses every refresh token with `code` from now on."""
        self._refresh = dict.fromkeys(self._refresh, code)


def remember(book: dict[str, V], key: str, value: V, most: int) -> None:
    """Keeps the last `most` entries."""
    book[key] = value
    if len(book) > most:
        del book[next(iter(book))]


def oauth_error(code: str, description: str, status: int = 400) -> Refused:
    return Refused(status, {"error": code, "error_description": description})
