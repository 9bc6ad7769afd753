"""The simulated sign-in service of P3: discovery, browser and device flows, refresh with rotation.

Nobody is asked: a browser that opens the authorize page is sent back with a code at once, and a device code is
approved after the polls that `options.device_answers` lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from aiohttp import web
from yarl import URL

from proxy.sandbox.oauth.codes import AuthorizationCodes
from proxy.sandbox.oauth.devices import DEVICE_GRANT, DeviceCodes, DeviceOptions
from proxy.sandbox.oauth.endpoint import TokenEndpoint, form_fields, oauth_error, sign_in_page
from proxy.sandbox.p3.tokens import CLIENT_ID, GrokTokens
from proxy.sandbox.wires.refusal import detail

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
