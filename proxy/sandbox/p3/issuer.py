"""The simulated sign-in service of P3, and its tokens: discovery, browser and device flows, refresh with rotation.

Nobody is asked: a browser that opens the authorize page is sent back with a code at once, and a device code is
approved after the polls that `options.device_answers` lists. A refresh token is good once; one that comes again much
later counts as stolen, which ends everything that was issued for the same sign-in.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Protocol

from aiohttp import web
from yarl import URL

from proxy.sandbox.oauth.codes import AuthorizationCodes
from proxy.sandbox.oauth.devices import DEVICE_GRANT, DeviceCodes, DeviceOptions
from proxy.sandbox.oauth.endpoint import TokenEndpoint, form_fields, oauth_error, sign_in_page
from proxy.sandbox.oauth.jwt import SigningKey
from proxy.sandbox.oauth.tokens import LIVE, MAX_TOKENS, Tokens, remember
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import detail

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


#: Where the real service sends a browser back to: any port of this machine.
REDIRECT_HOST = "127.0.0.1"
REDIRECT_PATH = "/callback"


class IssuerOptions(DeviceOptions, Protocol):
    """Without `device_enabled` there are no device codes (404)."""

    device_enabled: bool


class GrokIssuer(TokenEndpoint):
    """Beside the switches of the token endpoint:

    codes.deny      the authorize page sends this error back
    devices.deny    the user refuses a code
    document        laid over the discovery document; a member that is None is left out
    device_members  laid so over the answer with a code
    cut_answers     the connection breaks when a token request has been dealt with
    discoveries     how often the document was asked for
    """

    def __init__(self, tokens: GrokTokens, options: IssuerOptions) -> None:
        super().__init__()
        self._tokens = tokens
        self._options = options
        self.codes = AuthorizationCodes(CLIENT_ID)
        self.devices = DeviceCodes(options, tokens.host.clock)
        self.document: dict[str, Any] = {}
        self.device_members: dict[str, Any] = {}
        self.cut_answers = False
        self.discoveries = 0

    def recover(self) -> None:
        super().recover()
        self.codes.deny, self.devices.deny = None, False
        self.document, self.device_members, self.cut_answers = {}, {}, False

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/.well-known/openid-configuration", self._discovery),
            web.get("/oauth2/jwks", self._keys),
            web.get("/oauth2/authorize", self._authorize),
            web.post("/oauth2/token", self._token),
            web.post("/oauth2/device/code", self._device_code),
            web.get("/device", sign_in_page),
        ]

    async def _discovery(self, _request: web.Request) -> web.Response:
        self.discoveries += 1
        return _changed(_document(self._tokens.host.origin), self.document)

    async def _keys(self, _request: web.Request) -> web.Response:
        return web.json_response({"keys": [self._tokens.key.public]})

    async def _authorize(self, request: web.Request) -> web.Response:
        return self.codes.authorize(request.query, _is_listed)

    async def _token(self, request: web.Request) -> web.Response:
        grants = {"authorization_code": self._exchange, "refresh_token": self._refresh, DEVICE_GRANT: self._poll}
        answer = await self.serve_token(await form_fields(request), CLIENT_ID, grants)
        if self.cut_answers and request.transport is not None:
            request.transport.close()
        return answer

    async def _device_code(self, request: web.Request) -> web.Response:
        fields = await form_fields(request)
        if not self._options.device_enabled:
            raise detail("Not Found", 404)
        if fields.get("client_id") != CLIENT_ID:
            raise oauth_error("invalid_client", "unknown client_id", 401)
        if "offline_access" not in str(fields.get("scope", "")).split():
            raise oauth_error("invalid_scope", "offline_access is needed")
        return _changed(self.devices.new(f"{self._tokens.host.origin}/device"), self.device_members)

    def _exchange(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        _demand(fields, "code", "redirect_uri", "code_verifier")
        nonce = self.codes.redeem(fields)
        return {**self._tokens.issue(), "id_token": self._tokens.identity(nonce)}

    def _refresh(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        _demand(fields, "refresh_token")
        tokens = self._tokens.rotate(fields["refresh_token"])
        self.refreshes += 1
        return tokens

    def _poll(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        _demand(fields, "device_code")
        self.devices.redeem(fields)
        return {**self._tokens.issue(), "id_token": self._tokens.identity()}


def _changed(body: Mapping[str, Any], changes: Mapping[str, Any]) -> web.Response:
    return web.json_response({name: value for name, value in {**body, **changes}.items() if value is not None})


def _demand(fields: Mapping[str, Any], *names: str) -> None:
    """Raises Refused for a request that lacks one of these."""
    for name in names:
        if not fields.get(name):
            raise oauth_error("invalid_request", f"{name} is missing")


def _is_listed(url: URL) -> bool:
    """Whether a redirect address is one of a program on the user's machine."""
    return url.scheme == "http" and url.host == REDIRECT_HOST and bool(url.explicit_port) and url.path == REDIRECT_PATH


def _document(origin: str) -> dict[str, Any]:
    return {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/oauth2/authorize",
        "token_endpoint": f"{origin}/oauth2/token",
        "jwks_uri": f"{origin}/oauth2/jwks",
        "id_token_signing_alg_values_supported": ["ES256"],
        "device_authorization_endpoint": f"{origin}/oauth2/device/code",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", DEVICE_GRANT],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "scopes_supported": ["openid", "profile", "email", "offline_access", "grok-cli:access", "api:access"],
    }
