"""The tokens of one account: issued, rotated, revoked. What they say and how they are refused is the issuer's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

V = TypeVar("V")

#: A test that signs in a thousand times is plausible, more is a leak: the oldest are forgotten.
MAX_TOKENS = 10_000

LIVE = "live"


class Tokens:
    """Times in epoch seconds, from `clock`."""

    def __init__(self, lifetime_s: int, clock: Callable[[], float]) -> None:
        self.lifetime_s = lifetime_s
        self.clock = clock
        self._access: dict[str, float] = {}  # token -> epoch seconds of its end
        self._refresh: dict[str, str] = {}  # token -> LIVE | why it is refused

    def remember(self, access: str, ends: float, refresh: str) -> None:
        """Both are good from now on."""
        _remember(self._access, access, ends)
        _remember(self._refresh, refresh, LIVE)

    def stored(self, issued: Mapping[str, Any], lifetime_s: int | None, expires_ms: int | None) -> dict[str, Any]:
        """A token response as a client stores it: `{"access","refresh","expires"}`, expires in epoch ms.

        `expires_ms` replaces the stored time only, so that a record can look fresh while its token is refused.
        """
        lifetime = self.lifetime_s if lifetime_s is None else lifetime_s
        expires = int((self.clock() + lifetime) * 1000) if expires_ms is None else expires_ms
        return {"access": issued["access_token"], "refresh": issued["refresh_token"], "expires": expires}

    def accepts(self, access: str) -> bool:
        """Whether a request with this bearer is served now."""
        return self._access.get(access, 0.0) > self.clock()

    def spend(self, refresh: str, *, unknown: str, used: str) -> str:
        """LIVE, and then the token is `used` from now on; else why it is refused."""
        state = self._refresh.get(refresh, unknown)
        if state == LIVE:
            self._refresh[refresh] = used
        return state

    def revoke(self, token: str, code: str) -> None:
        """Sign-out of one token, access or refresh. Unknown ones are no error."""
        self._access.pop(token, None)
        if token in self._refresh:
            self._refresh[token] = code

    def revoke_access(self) -> None:
        """Every access token stops working; refresh tokens live on."""
        self._access.clear()

    def revoke_refresh(self, code: str = "refresh_token_expired") -> None:
        """Every refresh token is from now on refused with `code`."""
        self._refresh = dict.fromkeys(self._refresh, code)


def _remember(book: dict[str, V], key: str, value: V) -> None:
    book[key] = value
    if len(book) > MAX_TOKENS:
        del book[next(iter(book))]
