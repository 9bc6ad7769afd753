"""The simulated sign-in service of P1, and the tokens that it signs.

It knows browser and device flows, token exchange with rotation, and revocation. Nobody is asked: a browser that opens
the authorize page is sent back with a code at once, and a device code is approved after a number of polls.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from yarl import URL

from proxy.sandbox.oauth.codes import AuthorizationCodes, challenge_of
from proxy.sandbox.oauth.endpoint import (
    MAX_PENDING,
    TokenEndpoint,
    form_fields,
    json_fields,
    new_user_code,
    oauth_error,
    sign_in_page,
)
from proxy.sandbox.oauth.jwt import unsigned_jwt
from proxy.sandbox.oauth.tokens import LIVE, Tokens, remember
from proxy.sandbox.p1.options import P1Options
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import detail, invalid

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


#: The ports and hosts that the real service lists for redirects to a local program.
REDIRECT_PORTS = (1455, 1457)
REDIRECT_HOSTS = ("localhost", "127.0.0.1")
REDIRECT_PATH = "/auth/callback"


@dataclass(slots=True)
class _PendingDevice:
    user_code: str
    polls_left: int


class Issuer(TokenEndpoint):
    """Beside the switches of the token endpoint: `codes.deny` makes the authorize page send that error back."""

    def __init__(self, tokens: TokenBook, options: P1Options) -> None:
        super().__init__()
        self._tokens = tokens
        self._options = options
        self.device_enabled = True
        self.revoked: list[str] = []
        self.codes = AuthorizationCodes(CLIENT_ID)
        self._devices: dict[str, _PendingDevice] = {}

    def recover(self) -> None:
        super().recover()
        self.codes.deny = None

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/oauth/authorize", self._authorize),
            web.post("/oauth/token", self._token),
            web.post("/oauth/revoke", self._revoke),
            web.post("/api/accounts/deviceauth/usercode", self._user_code),
            web.post("/api/accounts/deviceauth/token", self._device_token),
            web.get("/codex/device", sign_in_page),
        ]

    async def _authorize(self, request: web.Request) -> web.Response:
        return self.codes.authorize(request.query, _is_listed)

    async def _token(self, request: web.Request) -> web.Response:
        grants = {"authorization_code": self._exchange, "refresh_token": self._refresh}
        return await self.serve_token(await _fields(request), CLIENT_ID, grants)

    def _exchange(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        self.codes.redeem(fields)
        return self._tokens.issue()

    def _refresh(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        tokens = self._tokens.rotate(str(fields.get("refresh_token")))
        self.refreshes += 1
        return tokens

    async def _revoke(self, request: web.Request) -> web.Response:
        fields = await _fields(request)
        token = fields.get("token")
        if not isinstance(token, str) or fields.get("client_id") != CLIENT_ID:
            raise oauth_error("invalid_request", "token and client_id are needed")
        self.revoked.append(token)
        self._tokens.revoke(token)
        return web.json_response({})

    async def _user_code(self, request: web.Request) -> web.Response:
        fields = await json_fields(request)
        if not self.device_enabled:
            raise detail("Not Found", 404)
        if fields.get("client_id") != CLIENT_ID:
            raise oauth_error("invalid_client", "unknown client_id")
        user_code, device_id = new_user_code(), f"deviceauth_{secrets.token_hex(12)}"
        pending = _PendingDevice(user_code, self._options.device_pending_polls)
        remember(self._devices, device_id, pending, MAX_PENDING)
        interval = str(self._options.device_interval_s)  # a text, as the real service has it
        return web.json_response({"device_auth_id": device_id, "user_code": user_code, "interval": interval})

    async def _device_token(self, request: web.Request) -> web.Response:
        fields = await json_fields(request)
        device = self._devices.get(str(fields.get("device_auth_id")))
        if device is None or fields.get("user_code") != device.user_code:
            raise oauth_error("invalid_request", "unknown device_auth_id or user_code")
        if device.polls_left > 0:
            device.polls_left -= 1
            raise oauth_error("authorization_pending", "not approved yet", 403)
        del self._devices[fields["device_auth_id"]]
        verifier = secrets.token_urlsafe(32)
        challenge = challenge_of(verifier)
        code = self.codes.new(challenge, f"{self._tokens.host.origin}/deviceauth/callback")
        return web.json_response({"authorization_code": code, "code_challenge": challenge, "code_verifier": verifier})


def _is_listed(url: URL) -> bool:
    """Whether a redirect address is one of the few."""
    here = url.scheme == "http" and url.host in REDIRECT_HOSTS and url.explicit_port in REDIRECT_PORTS
    return here and url.path == REDIRECT_PATH


async def _fields(request: web.Request) -> dict[str, Any]:
    """Form fields, or the members of a JSON body: the service takes both."""
    return await (json_fields if request.content_type == "application/json" else form_fields)(request)
