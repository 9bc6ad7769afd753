"""The simulated sign-in service of P5, and its tokens: the page that a browser opens, the polls, renewal.

No user is involved: opening the page confirms it. Access tokens contain their expiry; refresh tokens are good once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.codes import MAX_PENDING, challenge_of
from proxy.sandbox.oauth.issuer import TokenEndpoint, json_fields, sign_in_page
from proxy.sandbox.oauth.tokens import MAX_TOKENS, Tokens, remember
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import Refused, plain_reply

ISSUER, AUDIENCE = "https://authentication.cursor.sh", "https://cursor.com"


def unauthenticated(message: str) -> Refused:
    """The service's own form of a 401."""
    return Refused(401, {"code": "unauthenticated", "message": message})


class CursorTokens(Tokens):
    """The tokens of one user."""

    used = "used before"

    def __init__(self, options: P5Options, host: Host) -> None:
        super().__init__(options.access_lifetime_s, host)
        self._options = options

    def _claims(self, lifetime_s: int | None) -> dict[str, Any]:
        user, email = self._options.user_id, self._options.email
        who = {"iss": ISSUER, "aud": AUDIENCE, "type": "session", "sub": user, "email": email}
        return {**who, **self.times(self._options.access_lifetime_s if lifetime_s is None else lifetime_s)}

    def issue(self, lifetime_s: int | None = None, holder: str = "") -> dict[str, Any]:
        """`{"accessToken","refreshToken","authId"}`, both tokens valid from now on."""
        pair = self.new_pair(self._claims(lifetime_s))
        return {
            "accessToken": pair["access_token"],
            "refreshToken": pair["refresh_token"],
            "authId": self._options.user_id,
        }

    def refused(self, state: str) -> Refused:
        return unauthenticated(f"The refresh token is not valid: {state}.")

    def stored(self, issued: Mapping[str, Any], lifetime_s: int | None, expires_ms: int | None) -> dict[str, Any]:
        """`{"accessToken","refreshToken"}`. With `expires_ms` the token claims that expiry, but is accepted as long as
        before."""
        access = issued["accessToken"]
        if expires_ms is not None:
            claims = {**self._claims(lifetime_s), "exp": expires_ms // 1000}
            renamed: str = self.new_pair(claims)["access_token"]
            remember(self._access, renamed, self._access[access], MAX_TOKENS)
            access = renamed
        return {"accessToken": access, "refreshToken": issued["refreshToken"]}


#: Fixed parameters of the page.
_FIXED = {"mode": "login", "redirectTarget": "cli"}


def _refused(message: str, status: int = 400) -> Refused:
    return Refused(status, {"code": "invalid_argument", "message": message})


class CursorIssuer(TokenEndpoint):
    """The sign-in service. The switches of the token endpoint are those of a renewal. Besides them:

    granted  replaces the tokens of a confirmed sign-in: any JSON, or a text that is not JSON
    polls    how often it was asked whether a page was confirmed
    """

    def __init__(self, tokens: CursorTokens, options: P5Options) -> None:
        super().__init__()
        self._tokens = tokens
        self._options = options
        self._confirmed: dict[str, str] = {}  # uuid of a sign-in -> challenge of its opened page
        self._asked: dict[str, int] = {}  # uuid of a sign-in -> number of polls
        self.granted: Any = None
        self.polls = 0

    def recover(self) -> None:
        super().recover()
        self.granted = None

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/loginDeepControl", self._page),
            web.get("/auth/poll", self._poll),
            web.post("/auth/refresh", self._refresh),
            web.post("/auth/exchange_user_api_key", self._exchange),
        ]

    async def _page(self, request: web.Request) -> web.Response:
        query = request.query
        if len(query.get("challenge", "")) != 43:  # SHA-256 in base64url without padding
            raise _refused("challenge is missing or wrong")
        for name, value in _FIXED.items():
            if query.get(name) != value:
                raise _refused(f"{name} must be {value}")
        remember(self._confirmed, _sign_in_id(query), query["challenge"], MAX_PENDING)
        return await sign_in_page(request)

    async def _poll(self, request: web.Request) -> web.Response:
        """Returns 404 until the page was opened. Then the tokens, once, for the program that made the page's
        challenge."""
        if request.content_type != "application/json":
            raise _refused("content-type must be application/json", 415)
        sign_in, verifier = _sign_in_id(request.query), request.query.get("verifier", "")
        if not 43 <= len(verifier) <= 128:  # RFC 7636, 4.1
            raise _refused("verifier is missing or wrong")
        self.polls += 1
        before = self._asked.get(sign_in, 0)
        remember(self._asked, sign_in, before + 1, MAX_PENDING)
        if before < len(self._options.poll_answers):
            return web.json_response({}, status=self._options.poll_answers[before])
        if sign_in not in self._confirmed:
            return web.json_response({}, status=404)
        if challenge_of(verifier) != self._confirmed.pop(sign_in):
            raise _refused("verifier does not match the challenge", 403)
        return plain_reply(200, self._tokens.issue() if self.granted is None else self.granted, {})

    async def _refresh(self, request: web.Request) -> web.Response:
        bearer = await _bearer(request)
        fail = await self.switched({"grant_type": "refresh_token", "refresh_token": bearer})
        return fail or web.json_response(self._rotated(bearer))

    async def _exchange(self, request: web.Request) -> web.Response:
        """Renews as with a refresh token, also for the account's API key, which stays valid."""
        bearer = await _bearer(request)
        fail = await self.switched({"grant_type": "api_key", "api_key": bearer})
        is_key = bearer == self._options.api_key
        return fail or web.json_response(self._tokens.issue() if is_key else self._rotated(bearer))

    def _rotated(self, refresh: str) -> dict[str, Any]:
        tokens = self._tokens.rotate(refresh)
        self.refreshes += 1
        return tokens


def _sign_in_id(query: Mapping[str, str]) -> str:
    """The id of a sign-in. Raises Refused unless it is a UUID of version 4."""
    text = query.get("uuid", "")
    try:
        found = uuid.UUID(text)
    except ValueError:
        found = None
    if found is None or str(found) != text or found.version != 4:
        raise _refused("uuid is missing or wrong")
    return text


async def _bearer(request: web.Request) -> str:
    """The token of a renewal. Raises Refused."""
    if await json_fields(request):
        raise _refused("the body must be {}")
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not token:
        raise unauthenticated("A bearer token is needed.")
    return token
