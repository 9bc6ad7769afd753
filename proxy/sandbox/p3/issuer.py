"""The simulated sign-in service of P3, and its tokens: discovery, browser and device flows, refresh with rotation.

No user is involved: the authorize page sends a browser back with a code at once, and a device code is approved after
the polls that `options.device_answers` lists. A refresh token is good once. One that comes again much later counts as
stolen, which ends everything that was issued for its sign-in.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from yarl import URL

from proxy.sandbox.oauth.codes import DEVICE_GRANT, DeviceOptions
from proxy.sandbox.oauth.issuer import Flows, Issuer, overlaid
from proxy.sandbox.oauth.jwt import SigningKey
from proxy.sandbox.oauth.tokens import LIVE, MAX_TOKENS, Tokens, oauth_error, remember
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import Refused

CLIENT_ID = "b1a00492-073a-47ea-816f-4c329264a828"

#: The scope without which the API serves nothing.
API_SCOPE = "grok-cli:access"
SCOPE = f"openid profile email offline_access {API_SCOPE} api:access conversations:read conversations:write"

#: Seconds for which a used token is accepted again: its client may not have got the answer.
REUSE_GRACE_S = 60.0


class GrokTokens(Tokens):
    """The tokens of one user. New sign-ins get `scope`; `rotating` False: a refresh token stays good, and renewals
    bring no new one."""

    def __init__(self, user_id: str, lifetime_s: int, host: Host) -> None:
        super().__init__(lifetime_s, host)
        self.user_id = user_id
        self.scope = SCOPE
        self.rotating = True
        self.key = SigningKey()
        self._families: dict[str, str] = {}  # token, access or refresh -> sign-in
        self._scopes: dict[str, str] = {}  # access token -> granted scope
        self._used: dict[str, float] = {}  # refresh token -> epoch seconds

    def _claims(self, lifetime_s: int | None) -> dict[str, Any]:
        return {"iss": self.host.origin, "sub": self.user_id, "aud": CLIENT_ID, **self.times(lifetime_s)}

    def granted(self, holder: str, nonce: str | None = None) -> dict[str, Any]:
        """A token response with an identity token, which clients verify."""
        issued = self.issue(holder=holder)
        return {**issued, "id_token": self.key.jwt({**self._claims(None), **({"nonce": nonce} if nonce else {})})}

    def issue(
        self,
        lifetime_s: int | None = None,
        holder: str = "",
        *,
        family: str | None = None,
    ) -> dict[str, Any]:
        """A token response with the `scope`. Without a family it begins a new sign-in."""
        principal = {"principal_type": "User", "principal_id": self.user_id, "scope": self.scope}
        pair = self.new_pair({**self._claims(lifetime_s), **principal})
        family = family or secrets.token_hex(8)
        for name in ("access_token", "refresh_token"):
            remember(self._families, pair[name], family, 2 * MAX_TOKENS)
        remember(self._scopes, pair["access_token"], self.scope, MAX_TOKENS)
        return {**pair, "scope": self.scope}

    def stored(self, issued: Mapping[str, Any], lifetime_s: int | None, expires_ms: int | None) -> dict[str, Any]:
        """`{"access","refresh","expires_at_ms","issuer","client_id"}`, and nothing else."""
        record = super().stored(issued, lifetime_s, expires_ms)
        ends = record.pop("expires")
        return {**record, "expires_at_ms": ends, "issuer": self.host.origin, "client_id": CLIENT_ID}

    def rotate(self, refresh: str, holder: str = "") -> dict[str, Any]:
        if not self.rotating and self._refresh.get(refresh) == LIVE:
            issued = self.issue(family=self._families[refresh])
            self._refresh.pop(issued.pop("refresh_token"))
            return issued
        state = self.spend(refresh)
        now = self.host.clock()
        if state == LIVE:
            remember(self._used, refresh, now, MAX_TOKENS)
        elif state != self.used or now - self._used.get(refresh, 0.0) > REUSE_GRACE_S:
            self._revoke_family(refresh)
            raise self.refused(state)
        return self.issue(family=self._families[refresh])

    def refused(self, state: str) -> Refused:
        return oauth_error("invalid_grant", "The refresh token is invalid, expired, revoked or was already used.")

    def permits(self, access: str) -> bool:
        """Whether this bearer has the scope of the API."""
        return API_SCOPE in self._scopes.get(access, "").split()

    def _revoke_family(self, refresh: str) -> None:
        family = self._families.get(refresh)
        for token in [token for token, one in self._families.items() if family is not None and one == family]:
            self.revoke(token)


#: The host of redirects in the real service, with any port of this machine.
REDIRECT_HOST = "127.0.0.1"
REDIRECT_PATH = "/callback"


def _is_listed(url: URL) -> bool:
    """Whether a redirect address belongs to a program on the user's machine."""
    return url.scheme == "http" and url.host == REDIRECT_HOST and bool(url.explicit_port) and url.path == REDIRECT_PATH


FLOWS = Flows(
    CLIENT_ID,
    "/oauth2/token",
    {
        "authorization_code": ("code", "redirect_uri", "code_verifier"),
        "refresh_token": ("refresh_token",),
        DEVICE_GRANT: ("device_code",),
    },
    page="/device",
    authorize="/oauth2/authorize",
    is_listed=_is_listed,
    device="/oauth2/device/code",
    scope="offline_access",
)


class GrokIssuer(Issuer):
    """Adds discovery. `document` replaces members of the discovery document, None drops one; `discoveries` counts the
    requests for it. With `cut_answers` the connection breaks after a token request was handled."""

    tokens: GrokTokens

    def __init__(self, tokens: GrokTokens, options: DeviceOptions) -> None:
        super().__init__(FLOWS, tokens, options)
        self.document: dict[str, Any] = {}
        self.cut_answers = False
        self.discoveries = 0

    def recover(self) -> None:
        super().recover()
        self.document, self.cut_answers = {}, False

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.get("/.well-known/openid-configuration", self._discovery),
            web.get("/oauth2/jwks", self._keys),
        ]

    async def _discovery(self, _request: web.Request) -> web.Response:
        self.discoveries += 1
        return overlaid(_document(self.tokens.host.origin), self.document)

    async def _keys(self, _request: web.Request) -> web.Response:
        return web.json_response({"keys": [self.tokens.key.public]})

    async def serve(self, request: web.Request) -> web.Response:
        answer = await super().serve(request)
        if self.cut_answers and request.transport is not None:
            request.transport.close()
        return answer


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
