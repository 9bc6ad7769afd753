"""The simulated sign-in service of P1, and the tokens that it signs.

It has browser and device flows, token exchange with rotation, and revocation. No user is involved: the authorize page
sends a browser back with a code at once, and a device code is approved after a number of polls.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from yarl import URL

from proxy.sandbox.oauth.codes import MAX_PENDING, challenge_of, new_user_code
from proxy.sandbox.oauth.issuer import Flows, Issuer, any_fields, check_client, json_fields
from proxy.sandbox.oauth.jwt import unsigned_jwt
from proxy.sandbox.oauth.tokens import Tokens, oauth_error, remember
from proxy.sandbox.p1.options import P1Options
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import Refused, detail, invalid

AUTH_CLAIM = "https://api.openai.com/auth"
PROFILE_CLAIM = "https://api.openai.com/profile"
CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"


class TokenBook(Tokens):
    """The tokens of one account. A refused refresh token gets the vendor's code for the reason."""

    unknown = "refresh_token_invalidated"
    used = "refresh_token_reused"

    def __init__(self, account_id: str, email: str, plan: str, lifetime_s: int, host: Host) -> None:
        super().__init__(lifetime_s, host)
        self.account_id = account_id
        self.email = email
        self.plan = plan

    def issue(self, lifetime_s: int | None = None, holder: str = "") -> dict[str, Any]:
        """A token response with an `id_token`."""
        claims = {**self._claims(), **self.times(lifetime_s)}
        identity = {**claims, "aud": [CLIENT_ID], "email": self.email}
        pair = self.new_pair({**claims, "aud": ["https://api.openai.com/v1"]}, "rt_")
        return {"id_token": unsigned_jwt(identity), **pair}

    def refused(self, state: str) -> Refused:
        words = f"Your refresh token cannot be used ({state}). Please sign in again."
        return invalid(words, status=401, code=state)

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


#: Ports and hosts of redirects to a local program that the real service has registered.
REDIRECT_PORTS = (1455, 1457)
REDIRECT_HOSTS = ("localhost", "127.0.0.1")
REDIRECT_PATH = "/auth/callback"


def _is_listed(url: URL) -> bool:
    """Whether a redirect address is registered."""
    here = url.scheme == "http" and url.host in REDIRECT_HOSTS and url.explicit_port in REDIRECT_PORTS
    return here and url.path == REDIRECT_PATH


FLOWS = Flows(
    CLIENT_ID,
    "/oauth/token",
    {"authorization_code": (), "refresh_token": ()},
    page="/codex/device",
    authorize="/oauth/authorize",
    is_listed=_is_listed,
    takes_json=True,
)


@dataclass(slots=True)
class _PendingDevice:
    user_code: str
    polls_left: int


class CodexIssuer(Issuer):
    """Adds P1's own device flow, and revocation: `revoked` are the tokens that were signed out."""

    def __init__(self, tokens: TokenBook, options: P1Options) -> None:
        super().__init__(FLOWS, tokens)
        self._polls = options
        self.device_enabled = True
        self.revoked: list[str] = []
        self._pending: dict[str, _PendingDevice] = {}

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.post("/oauth/revoke", self._revoke),
            web.post("/api/accounts/deviceauth/usercode", self._user_code),
            web.post("/api/accounts/deviceauth/token", self._device_token),
        ]

    async def _revoke(self, request: web.Request) -> web.Response:
        fields = await any_fields(request)
        token = fields.get("token")
        if not isinstance(token, str) or fields.get("client_id") != CLIENT_ID:
            raise oauth_error("invalid_request", "token and client_id are needed")
        self.revoked.append(token)
        self.tokens.revoke(token)
        return web.json_response({})

    async def _user_code(self, request: web.Request) -> web.Response:
        fields = await json_fields(request)
        if not self.device_enabled:
            raise detail("Not Found", 404)
        check_client(fields, CLIENT_ID, 400)
        user_code, device_id = new_user_code(), f"deviceauth_{secrets.token_hex(12)}"
        remember(self._pending, device_id, _PendingDevice(user_code, self._polls.device_pending_polls), MAX_PENDING)
        interval = str(self._polls.device_interval_s)  # a text, as in the real service
        return web.json_response({"device_auth_id": device_id, "user_code": user_code, "interval": interval})

    async def _device_token(self, request: web.Request) -> web.Response:
        fields = await json_fields(request)
        device = self._pending.get(str(fields.get("device_auth_id")))
        if device is None or fields.get("user_code") != device.user_code:
            raise oauth_error("invalid_request", "unknown device_auth_id or user_code")
        if device.polls_left > 0:
            device.polls_left -= 1
            raise oauth_error("authorization_pending", "not approved yet", 403)
        del self._pending[fields["device_auth_id"]]
        verifier = secrets.token_urlsafe(32)
        challenge = challenge_of(verifier)
        code = self.codes.new(challenge, f"{self.tokens.host.origin}/deviceauth/callback")
        return web.json_response({"authorization_code": code, "code_challenge": challenge, "code_verifier": verifier})
