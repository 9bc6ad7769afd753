"""What the simulated P1 signs: access, refresh and identity tokens with the claims that clients read."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from proxy.sandbox.oauth.jwt import unsigned_jwt
from proxy.sandbox.oauth.tokens import LIVE, Tokens
from proxy.sandbox.wires.refusal import invalid

AUTH_CLAIM = "https://api.openai.com/auth"
PROFILE_CLAIM = "https://api.openai.com/profile"
CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"

_INVALIDATED = "refresh_token_invalidated"


class TokenBook(Tokens):
    """The tokens of one account. Times in epoch seconds, from `clock`."""

    def __init__(self, *, account_id: str, email: str, plan: str, lifetime_s: int, clock: Callable[[], float]) -> None:
        super().__init__(lifetime_s, clock)
        self.account_id = account_id
        self.email = email
        self.plan = plan

    def issue(self, issuer: str, lifetime_s: int | None = None) -> dict[str, Any]:
        """A new token response `{"id_token","access_token","refresh_token","token_type","expires_in"}`.

        A negative lifetime gives an access token that is already expired; `expires_in` is then 1, since a client
        may refuse zero or less.
        """
        lifetime = self.lifetime_s if lifetime_s is None else lifetime_s
        now = int(self.clock())
        claims = self._claims(issuer, now, now + lifetime)
        access = unsigned_jwt({**claims, "aud": ["https://api.openai.com/v1"], "jti": secrets.token_hex(8)})
        refresh = f"rt_{secrets.token_urlsafe(32)}"
        self.remember(access, float(now + lifetime), refresh)
        return {
            "id_token": unsigned_jwt({**claims, "aud": [CLIENT_ID], "email": self.email}),
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": max(lifetime, 1),
        }

    def rotate(self, refresh: str, issuer: str) -> dict[str, Any]:
        """A refresh token is good once. Raises Refused (401) with the vendor's code for a used or unknown one."""
        state = self.spend(refresh, unknown=_INVALIDATED, used="refresh_token_reused")
        if state != LIVE:
            raise invalid(f"Your refresh token cannot be used ({state}). Please sign in again.", status=401, code=state)
        return self.issue(issuer)

    def revoke(self, token: str, code: str = _INVALIDATED) -> None:
        super().revoke(token, code)

    def _claims(self, issuer: str, now: int, end: int) -> dict[str, Any]:
        return {
            "iss": issuer,
            "sub": "user-sandbox",
            "iat": now,
            "exp": end,
            AUTH_CLAIM: {
                "chatgpt_account_id": self.account_id,
                "chatgpt_plan_type": self.plan,
                "chatgpt_user_id": "user-sandbox",
                "user_id": "user-sandbox",
                "organization_id": "org-sandbox",
            },
            PROFILE_CLAIM: {"email": self.email, "email_verified": True},
        }
