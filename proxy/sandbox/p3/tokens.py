"""The tokens of the simulated P3: a refresh token is good once, and one that comes again much later is taken for
stolen, which ends everything that was issued for the same sign-in."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from proxy.sandbox.oauth.endpoint import oauth_error
from proxy.sandbox.oauth.signing import SigningKey
from proxy.sandbox.oauth.tokens import LIVE, MAX_TOKENS, Tokens, remember
from proxy.sandbox.upstream import Host

CLIENT_ID = "b1a00492-073a-47ea-816f-4c329264a828"

#: The scope without which the API serves nothing.
API_SCOPE = "grok-cli:access"
SCOPE = f"openid profile email offline_access {API_SCOPE} api:access conversations:read conversations:write"

#: For so long a token that was used is taken again: its client may not have got the answer.
REUSE_GRACE_S = 60.0

_USED, _DEAD = "used", "dead"


class GrokTokens(Tokens):
    """The tokens of one user. `scope` is granted to whoever signs in from now on; `rotating` False: a refresh token
    stays good, and its renewals bring none."""

    def __init__(self, user_id: str, lifetime_s: int, host: Host) -> None:
        super().__init__(lifetime_s, host)
        self.user_id = user_id
        self.scope = SCOPE
        self.rotating = True
        self.key = SigningKey()
        self._families: dict[str, str] = {}  # token, access or refresh -> sign-in
        self._scopes: dict[str, str] = {}  # access token -> what was granted
        self._used: dict[str, float] = {}  # refresh token -> epoch seconds

    def _claims(self, lifetime_s: int | None) -> dict[str, Any]:
        return {"iss": self.host.origin, "sub": self.user_id, "aud": CLIENT_ID, **self.times(lifetime_s)}

    def identity(self, nonce: str | None = None) -> str:
        """The identity token of a sign-in, which clients check."""
        return self.key.jwt({**self._claims(None), **({"nonce": nonce} if nonce else {})})

    def issue(self, lifetime_s: int | None = None, *, family: str | None = None) -> dict[str, Any]:
        """A new token response, see `new_pair`, with the `scope`. Without a family it is that of a new sign-in."""
        principal = {"principal_type": "User", "principal_id": self.user_id, "scope": self.scope}
        pair = self.new_pair({**self._claims(lifetime_s), **principal})
        family = family or secrets.token_hex(8)
        for name in ("access_token", "refresh_token"):
            remember(self._families, pair[name], family, 2 * MAX_TOKENS)
        remember(self._scopes, pair["access_token"], self.scope, MAX_TOKENS)
        return {**pair, "scope": self.scope}

    def stored(self, issued: Mapping[str, Any], lifetime_s: int | None, expires_ms: int | None) -> dict[str, Any]:
        """`{"access","refresh","expires_at_ms","issuer","client_id"}`, and no more."""
        record = super().stored(issued, lifetime_s, expires_ms)
        ends = record.pop("expires")
        return {**record, "expires_at_ms": ends, "issuer": self.host.origin, "client_id": CLIENT_ID}

    def rotate(self, refresh: str) -> dict[str, Any]:
        """Raises Refused (400, `invalid_grant`)."""
        if not self.rotating and self._refresh.get(refresh) == LIVE:
            issued = self.issue(family=self._families[refresh])
            self._refresh.pop(issued.pop("refresh_token"))
            return issued
        state = self.spend(refresh, unknown=_DEAD, used=_USED)
        now = self.host.clock()
        if state == LIVE:
            remember(self._used, refresh, now, MAX_TOKENS)
        elif state != _USED or now - self._used.get(refresh, 0.0) > REUSE_GRACE_S:
            self._revoke_family(refresh)
            raise oauth_error("invalid_grant", "The refresh token is invalid, expired, revoked or was already used.")
        return self.issue(family=self._families[refresh])

    def permits(self, access: str) -> bool:
        """Whether this bearer was granted the scope of the API."""
        return API_SCOPE in self._scopes.get(access, "").split()

    def _revoke_family(self, refresh: str) -> None:
        family = self._families.get(refresh)
        for token in [token for token, one in self._families.items() if family is not None and one == family]:
            self.revoke(token, _DEAD)
