"""The simulated sign-in service of P1: browser and device flows, token exchange with rotation, revocation.

Nobody is asked: a browser that opens the authorize page is sent back with a code at once, and a device code is
approved after a number of polls.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web
from yarl import URL

from proxy.sandbox.moves import Reply
from proxy.sandbox.p1_tokens import CLIENT_ID, encode_base64url
from proxy.sandbox.refusal import Refused, detail, plain_reply

if TYPE_CHECKING:
    from proxy.sandbox.p1 import P1

#: The ports and hosts that the real service lists for redirects to a local program.
REDIRECT_PORTS = (1455, 1457)
REDIRECT_HOSTS = ("localhost", "127.0.0.1")
REDIRECT_PATH = "/auth/callback"

#: Codes and device sign-ins that are under way; older ones are forgotten.
MAX_PENDING = 100

#: Token requests kept for inspection.
KEPT_REQUESTS = 128


@dataclass(slots=True)
class _Code:
    """An authorization code that waits for its exchange."""

    challenge: str
    redirect_uri: str


@dataclass(slots=True)
class _Device:
    user_code: str
    polls_left: int


class Issuer:
    """`fail` and `delay_s` alter the token endpoint; `deny` makes the authorize page send that error back."""

    def __init__(self, p1: P1) -> None:
        self._p1 = p1
        self.fail: Reply | None = None
        self.delay_s = 0.0
        self.deny: str | None = None
        self.device_enabled = True
        self.refreshes = 0
        self.refresh_requests = 0
        self.revoked: list[str] = []
        self.token_requests: deque[dict[str, Any]] = deque(maxlen=KEPT_REQUESTS)  # the fields of each
        self._codes: OrderedDict[str, _Code] = OrderedDict()
        self._devices: OrderedDict[str, _Device] = OrderedDict()

    def answer_with(self, status: int, body: Any = "", headers: Mapping[str, str] | None = None) -> None:
        """From now on the token endpoint answers just this; `recover` ends it."""
        self.fail = Reply(status, body, headers)

    def recover(self) -> None:
        self.fail, self.delay_s, self.deny = None, 0.0, None

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/oauth/authorize", _guarded(self._authorize))
        app.router.add_post("/oauth/token", _guarded(self._token))
        app.router.add_post("/oauth/revoke", _guarded(self._revoke))
        app.router.add_post("/api/accounts/deviceauth/usercode", _guarded(self._user_code))
        app.router.add_post("/api/accounts/deviceauth/token", _guarded(self._device_token))
        app.router.add_get("/codex/device", _guarded(self._device_page))

    async def _authorize(self, request: web.Request) -> web.Response:
        query = request.query
        redirect = _checked_redirect(query.get("redirect_uri", ""))
        demands = {
            "client_id": query.get("client_id") == CLIENT_ID,
            "response_type": query.get("response_type") == "code",
            "code_challenge_method": query.get("code_challenge_method") == "S256",
            "code_challenge": len(query.get("code_challenge", "")) == 43,  # SHA-256 in base64url
            "scope": {"openid", "offline_access"} <= set(query.get("scope", "").split()),
            "state": bool(query.get("state")),
        }
        for name, met in demands.items():
            if not met:
                raise _oauth_error("invalid_request", f"{name} is missing or wrong")
        answer = {"state": query["state"]}
        if self.deny is not None:
            answer["error"] = self.deny
        else:
            answer["code"] = self._new_code(query["code_challenge"], query["redirect_uri"])
        return web.Response(status=302, headers={"location": str(redirect.update_query(answer))})

    def _new_code(self, challenge: str, redirect_uri: str) -> str:
        code = f"ac_{secrets.token_urlsafe(24)}"
        self._codes[code] = _Code(challenge, redirect_uri)
        if len(self._codes) > MAX_PENDING:
            self._codes.popitem(last=False)
        return code

    async def _token(self, request: web.Request) -> web.Response:
        fields = await _fields(request)
        self.token_requests.append(fields)
        if fields.get("grant_type") == "refresh_token":
            self.refresh_requests += 1
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.fail is not None:
            return plain_reply(self.fail.status, self.fail.body, self.fail.headers or {})
        if fields.get("client_id") != CLIENT_ID:
            raise _oauth_error("invalid_client", "unknown client_id", 401)
        grants = {"authorization_code": self._exchange, "refresh_token": self._refresh}
        grant = grants.get(str(fields.get("grant_type")))
        if grant is None:
            raise _oauth_error("unsupported_grant_type", "authorization_code or refresh_token expected")
        return web.json_response(grant(fields))

    def _exchange(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        code = self._codes.pop(str(fields.get("code")), None)  # gone whatever comes: a code is good once
        if code is None:
            raise _oauth_error("invalid_grant", "the code is unknown or was used")
        if fields.get("redirect_uri") != code.redirect_uri:
            raise _oauth_error("invalid_grant", "redirect_uri differs from that of the authorization")
        if _challenge(str(fields.get("code_verifier", ""))) != code.challenge:
            raise _oauth_error("invalid_grant", "code_verifier does not match the challenge")
        return self._p1.tokens.issue(self._p1.origin)

    def _refresh(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        tokens = self._p1.tokens.rotate(str(fields.get("refresh_token")), self._p1.origin)
        self.refreshes += 1
        return tokens

    async def _revoke(self, request: web.Request) -> web.Response:
        fields = await _fields(request)
        token = fields.get("token")
        if not isinstance(token, str) or fields.get("client_id") != CLIENT_ID:
            raise _oauth_error("invalid_request", "token and client_id are needed")
        self.revoked.append(token)
        self._p1.tokens.revoke(token)
        return web.json_response({})

    async def _user_code(self, request: web.Request) -> web.Response:
        fields = await _json_fields(request)
        if not self.device_enabled:
            raise detail("Not Found", 404)
        if fields.get("client_id") != CLIENT_ID:
            raise _oauth_error("invalid_client", "unknown client_id")
        letters = "BCDFGHJKLMNPQRSTVWXZ"
        user_code = "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(2))
        device_id = f"deviceauth_{secrets.token_hex(12)}"
        self._devices[device_id] = _Device(user_code, self._p1.options.device_pending_polls)
        if len(self._devices) > MAX_PENDING:
            self._devices.popitem(last=False)
        interval = str(self._p1.options.device_interval_s)  # a text, as the real service has it
        return web.json_response({"device_auth_id": device_id, "user_code": user_code, "interval": interval})

    async def _device_token(self, request: web.Request) -> web.Response:
        fields = await _json_fields(request)
        device = self._devices.get(str(fields.get("device_auth_id")))
        if device is None or fields.get("user_code") != device.user_code:
            raise _oauth_error("invalid_request", "unknown device_auth_id or user_code")
        if device.polls_left > 0:
            device.polls_left -= 1
            raise _oauth_error("authorization_pending", "not approved yet", 403)
        del self._devices[fields["device_auth_id"]]
        verifier = secrets.token_urlsafe(32)
        code = self._new_code(_challenge(verifier), f"{self._p1.origin}/deviceauth/callback")
        return web.json_response(
            {"authorization_code": code, "code_challenge": _challenge(verifier), "code_verifier": verifier}
        )

    async def _device_page(self, _request: web.Request) -> web.Response:
        page = (
            "<!doctype html><title>Sandbox sign-in</title><h1>Sandbox sign-in</h1>"
            "<p>This is a simulated account on your own machine. There is nothing to type in: the program that shows "
            "you a code is signed in by itself after a moment.</p>"
        )
        return web.Response(text=page, content_type="text/html")


def _guarded(
    handler: Callable[[web.Request], Awaitable[web.Response]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler with refusals turned into answers."""

    async def guarded(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except Refused as refused:
            return refused.response()

    return guarded


def _checked_redirect(text: str) -> URL:
    """The redirect address, if it is one of the few that are listed."""
    url = URL(text)
    listed = url.scheme == "http" and url.host in REDIRECT_HOSTS and url.explicit_port in REDIRECT_PORTS
    if not listed or url.path != REDIRECT_PATH:
        raise _oauth_error("invalid_request", "redirect_uri is not listed for this client")
    return url


def _challenge(verifier: str) -> str:
    return encode_base64url(hashlib.sha256(verifier.encode()).digest())


async def _fields(request: web.Request) -> dict[str, Any]:
    """Form fields, or the members of a JSON body: the service takes both."""
    if request.content_type == "application/json":
        return await _json_fields(request)
    if request.content_type != "application/x-www-form-urlencoded":
        raise detail("Unsupported Media Type", 415)
    return {name: value for name, value in (await request.post()).items() if isinstance(value, str)}


async def _json_fields(request: web.Request) -> dict[str, Any]:
    if request.content_type != "application/json":
        raise detail("Unsupported Media Type", 415)
    try:
        fields = json.loads(await request.read())
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise _oauth_error("invalid_request", "a JSON object is needed")
    return fields


def _oauth_error(code: str, description: str, status: int = 400) -> Refused:
    return Refused(status, {"error": code, "error_description": description})
