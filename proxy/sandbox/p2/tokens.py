"""The tokens of the simulated P2: each is good on one device only, and a refresh token is good once."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from proxy.sandbox.oauth.endpoint import oauth_error
from proxy.sandbox.oauth.jwt import unsigned_jwt
from proxy.sandbox.oauth.tokens import LIVE, MAX_TOKENS, Tokens

CLIENT_ID = "17e5f671-d194-4dfb-9706-5516cb48c098"

_DEAD = "invalid_grant"


class DeviceTokens(Tokens):
    """The tokens of one user."""

    def __init__(self, user_id: str, lifetime_s: int, clock: Callable[[], float]) -> None:
        super().__init__(lifetime_s, clock)
        self.user_id = user_id
        self.scope = "kimi-code"
        self._devices: dict[str, str] = {}  # token, access or refresh -> device id

    def issue(self, device_id: str, lifetime_s: int | None = None) -> dict[str, Any]:
        """A new token response `{"access_token","refresh_token","expires_in","scope","token_type"}`.

        A negative lifetime gives an access token that is already expired.
        """
        lifetime = self.lifetime_s if lifetime_s is None else lifetime_s
        now = int(self.clock())
        claims = {
            "user_id": self.user_id,
            "device_id": device_id,
            "scope": self.scope,
            "iat": now,
            "exp": now + lifetime,
            "jti": secrets.token_hex(8),
        }
        access, refresh = unsigned_jwt(claims), secrets.token_urlsafe(32)
        self.remember(access, float(now + lifetime), refresh)
        for token in (access, refresh):
            self._devices[token] = device_id
            if len(self._devices) > 2 * MAX_TOKENS:
                del self._devices[next(iter(self._devices))]
        return {
            "access_token": access,
            "refresh_token": refresh,
            "expires_in": max(lifetime, 1),
            "scope": self.scope,
            "token_type": "Bearer",
        }

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
