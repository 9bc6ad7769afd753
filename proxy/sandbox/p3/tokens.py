"""What the simulated P3 signs: access and refresh tokens; a refresh token is good once."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.oauth.endpoint import oauth_error
from proxy.sandbox.oauth.tokens import LIVE, Tokens
from proxy.sandbox.upstream import Host

CLIENT_ID = "b1a00492-073a-47ea-816f-4c329264a828"

_DEAD = "invalid_grant"


class GrokTokens(Tokens):
    """The tokens of one user."""

    def __init__(self, user_id: str, lifetime_s: int, host: Host) -> None:
        super().__init__(lifetime_s, host)
        self.user_id = user_id

    def issue(self, lifetime_s: int | None = None) -> dict[str, Any]:
        """A new token response, see `new_pair`."""
        return self.new_pair({"iss": self.host.origin, "sub": self.user_id, **self.times(lifetime_s)})

    def rotate(self, refresh: str) -> dict[str, Any]:
        """Raises Refused (400, `invalid_grant`)."""
        if self.spend(refresh, unknown=_DEAD, used=_DEAD) != LIVE:
            raise oauth_error(_DEAD, "The refresh token is invalid, expired or was used.")
        return self.issue()
