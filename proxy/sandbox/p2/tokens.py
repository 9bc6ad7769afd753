"""The tokens of the simulated P2: each is good on one device only, and a refresh token is good once."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.oauth.endpoint import oauth_error
from proxy.sandbox.oauth.tokens import LIVE, MAX_TOKENS, Tokens, remember
from proxy.sandbox.upstream import Host

CLIENT_ID = "17e5f671-d194-4dfb-9706-5516cb48c098"

_DEAD = "invalid_grant"


class DeviceTokens(Tokens):
    """The tokens of one user."""

    def __init__(self, user_id: str, lifetime_s: int, host: Host) -> None:
        super().__init__(lifetime_s, host)
        self.user_id = user_id
        self.scope = "kimi-code"
        self._devices: dict[str, str] = {}  # token, access or refresh -> device id

    def issue(self, device_id: str, lifetime_s: int | None = None) -> dict[str, Any]:
        """A new token response, see `new_pair`, with the `scope`."""
        claims = {"user_id": self.user_id, "device_id": device_id, "scope": self.scope, **self.times(lifetime_s)}
        pair = self.new_pair(claims)
        for name in ("access_token", "refresh_token"):
            remember(self._devices, pair[name], device_id, 2 * MAX_TOKENS)
        return {**pair, "scope": self.scope}

    def device_of(self, token: str) -> str | None:
        """The device that the token is good on."""
        return self._devices.get(token)

    def rotate(self, refresh: str, device_id: str) -> dict[str, Any]:
        """A refresh token is good once, on its device. Raises Refused (401, `invalid_grant`)."""
        if self.device_of(refresh) not in (None, device_id):
            raise oauth_error(_DEAD, "The refresh token belongs to another device.", 401)
        if self.spend(refresh, unknown=_DEAD, used=_DEAD) != LIVE:
            raise oauth_error(_DEAD, "The provided authorization grant is invalid, expired or revoked.", 401)
        return self.issue(device_id)
