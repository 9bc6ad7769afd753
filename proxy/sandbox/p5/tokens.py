"""The tokens of the simulated P5: access tokens that say their own end, refresh tokens that are good once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.sandbox.oauth.tokens import LIVE, MAX_TOKENS, Tokens, remember
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import Refused

ISSUER, AUDIENCE = "https://authentication.cursor.sh", "https://cursor.com"


def unauthenticated(message: str) -> Refused:
    """The service's own form of a 401."""
    return Refused(401, {"code": "unauthenticated", "message": message})


class CursorTokens(Tokens):
    """The tokens of one user."""

    def __init__(self, options: P5Options, host: Host) -> None:
        super().__init__(options.access_lifetime_s, host)
        self._options = options

    def _claims(self, lifetime_s: int | None) -> dict[str, Any]:
        user, email = self._options.user_id, self._options.email
        who = {"iss": ISSUER, "aud": AUDIENCE, "type": "session", "sub": user, "email": email}
        return {**who, **self.times(self._options.access_lifetime_s if lifetime_s is None else lifetime_s)}

    def issue(self, lifetime_s: int | None = None) -> dict[str, Any]:
        """`{"accessToken","refreshToken","authId"}`, both tokens good from now on."""
        pair = self.new_pair(self._claims(lifetime_s))
        return {
            "accessToken": pair["access_token"],
            "refreshToken": pair["refresh_token"],
            "authId": self._options.user_id,
        }

    def rotate(self, refresh: str) -> dict[str, Any]:
        """Raises Refused (401): a refresh token is good once."""
        state = self.spend(refresh, unknown="unknown", used="used before")
        if state != LIVE:
            raise unauthenticated(f"The refresh token is not valid: {state}.")
        return self.issue()

    def stored(self, issued: Mapping[str, Any], lifetime_s: int | None, expires_ms: int | None) -> dict[str, Any]:
        """`{"accessToken","refreshToken"}`. With `expires_ms` the token says that end, and ends as it would have."""
        access = issued["accessToken"]
        if expires_ms is not None:
            claims = {**self._claims(lifetime_s), "exp": expires_ms // 1000}
            told: str = self.new_pair(claims)["access_token"]
            remember(self._access, told, self._access[access], MAX_TOKENS)
            access = told
        return {"accessToken": access, "refreshToken": issued["refreshToken"]}
