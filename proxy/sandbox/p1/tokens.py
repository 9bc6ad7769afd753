"""What the simulated P1 signs: access, refresh and identity tokens with the claims that clients read."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.oauth.jwt import unsigned_jwt
from proxy.sandbox.oauth.tokens import LIVE, Tokens
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import invalid

AUTH_CLAIM = "https://api.openai.com/auth"
PROFILE_CLAIM = "https://api.openai.com/profile"
CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"

_INVALIDATED = "refresh_token_invalidated"


class TokenBook(Tokens):
    """The tokens of one account."""

    def __init__(self, account_id: str, email: str, plan: str, lifetime_s: int, host: Host) -> None:
        super().__init__(lifetime_s, host)
        self.account_id = account_id
        self.email = email
        self.plan = plan

    def issue(self, lifetime_s: int | None = None) -> dict[str, Any]:
        """A new token response, see `new_pair`, with an `id_token`."""
        claims = {**self._claims(), **self.times(lifetime_s)}
        identity = {**claims, "aud": [CLIENT_ID], "email": self.email}
        pair = self.new_pair({**claims, "aud": ["https://api.openai.com/v1"]}, "rt_")
        return {"id_token": unsigned_jwt(identity), **pair}

    def rotate(self, refresh: str) -> dict[str, Any]:
        """A refresh token is good once. Raises Refused (401) with the vendor's code for a used or unknown one."""
        state = self.spend(refresh, unknown=_INVALIDATED, used="refresh_token_reused")
        if state != LIVE:
            raise invalid(f"Your refresh token cannot be used ({state}). Please sign in again.", status=401, code=state)
        return self.issue()

    def revoke(self, token: str, code: str = _INVALIDATED) -> None:
        super().revoke(token, code)

    def _claims(self) -> dict[str, Any]:
        return {
            "iss": self.host.origin,
            "sub": "user-sandbox",
            AUTH_CLAIM: {
                "chatgpt_account_id": self.account_id,
                "chatgpt_plan_type": self.plan,
                "chatgpt_user_id": "user-sandbox",
                "user_id": "user-sandbox",
                "organization_id": "org-sandbox",
            },
            PROFILE_CLAIM: {"email": self.email, "email_verified": True},
        }
