"""The simulated sign-in services: the switches of a token endpoint, the flows of an issuer as data, and the account.

No user is involved: the authorize page sends a browser back with a code at once, and a device code is approved after
the polls that the options list.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from yarl import URL

from proxy.sandbox.oauth.codes import DEVICE_GRANT, AuthorizationCodes, DeviceCodes, DeviceOptions
from proxy.sandbox.oauth.tokens import Tokens, oauth_error
from proxy.sandbox.play.actions import Reply
from proxy.sandbox.upstream import Upstream
from proxy.sandbox.wires.refusal import detail, plain_reply

#: Token requests kept for inspection.
KEPT_REQUESTS = 128

#: Turns the fields of a token request into a token response, or raises Refused.
Grant = Callable[[Mapping[str, Any]], dict[str, Any]]


class TokenEndpoint:
    """Handles token requests. `fail` and `delay_s` alter the answers; the counters and `token_requests` record the
    requests."""

    def __init__(self) -> None:
        self.fail: Reply | None = None
        self.fail_left: int | None = None  # remaining failures; None: for ever
        self.delay_s = 0.0
        self.refreshes = 0
        self.refresh_requests = 0
        self.token_requests: deque[dict[str, Any]] = deque(maxlen=KEPT_REQUESTS)  # the fields of each

    def answer_with(
        self, status: int, body: Any = "", headers: Mapping[str, str] | None = None, *, times: int | None = None
    ) -> None:
        """Makes the token endpoint answer with this from now on (or `times` times); `recover` ends it."""
        self.fail, self.fail_left = Reply(status, body, headers), times

    def recover(self) -> None:
        self.fail, self.fail_left, self.delay_s = None, None, 0.0

    async def serve_token(self, fields: dict[str, Any], client_id: str, grants: Mapping[str, Grant]) -> web.Response:
        """Answers one token request. A successful refresh is counted by its grant."""
        fail = await self.switched(fields)
        if fail is not None:
            return fail
        check_client(fields, client_id)
        grant = grants.get(str(fields.get("grant_type")))
        if grant is None:
            raise oauth_error("unsupported_grant_type", f"one of {', '.join(grants)} expected")
        return web.json_response(grant(fields))

    async def switched(self, fields: dict[str, Any]) -> web.Response | None:
        """Notes a token request; returns the switched answer, if any."""
        self.token_requests.append(fields)
        if fields.get("grant_type") == "refresh_token":
            self.refresh_requests += 1
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        fail = self._next_failure()
        return None if fail is None else plain_reply(fail.status, fail.body, fail.headers or {})

    def _next_failure(self) -> Reply | None:
        if self.fail is None or self.fail_left is None:
            return self.fail
        self.fail_left -= 1
        fail = self.fail
        if self.fail_left <= 0:
            self.fail = self.fail_left = None
        return fail


@dataclass(frozen=True, slots=True)
class Flows:
    """The sign-in flows of one service. Flows without a path do not exist.

    grants      kind of a token request -> the fields that it needs
    page        where a person enters a device code
    authorize   the page that a browser opens; `is_listed` checks where it may send the browser back to
    device      issues device codes, for scopes with `scope` among them
    holder      the device of a request, to which codes and tokens are bound. Raises Refused
    takes_json  the token endpoint reads JSON as well as forms
    """

    client_id: str
    token: str
    grants: Mapping[str, tuple[str, ...]]
    page: str
    authorize: str = ""
    is_listed: Callable[[URL], bool] = lambda _url: False
    device: str = ""
    scope: str = ""
    holder: Callable[[web.Request], str] = lambda _request: ""
    takes_json: bool = False


class Issuer(TokenEndpoint):
    """A sign-in service. Besides the switches of the token endpoint:

    codes.deny      the authorize page sends this error back
    devices.deny    the user refuses a code
    device_members  replace members of the answer with a device code; None drops a member
    holders         the holder of every call, oldest first
    """

    def __init__(self, flows: Flows, tokens: Tokens, options: DeviceOptions | None = None) -> None:
        super().__init__()
        self.flows = flows
        self.tokens = tokens
        self.options = options or DeviceOptions()
        self.codes = AuthorizationCodes(flows.client_id)
        self.devices = DeviceCodes(self.options, tokens.host.clock)
        self.device_members: dict[str, Any] = {}
        self.holders: deque[str] = deque(maxlen=KEPT_REQUESTS)

    def recover(self) -> None:
        super().recover()
        self.codes.deny, self.devices.deny, self.device_members = None, False, {}

    def routes(self) -> list[web.RouteDef]:
        flows = self.flows
        rows = (
            (web.get, flows.authorize, self._authorize),
            (web.post, flows.token, self.serve),
            (web.post, flows.device, self._new_device),
            (web.get, flows.page, sign_in_page),
        )
        return [method(path, handler) for method, path, handler in rows if path]

    async def _authorize(self, request: web.Request) -> web.Response:
        return self.codes.authorize(request.query, self.flows.is_listed)

    async def serve(self, request: web.Request) -> web.Response:
        """Serves the token endpoint."""
        holder = self._holder(request)
        fields = await (any_fields if self.flows.takes_json else form_fields)(request)
        grants = {name: self._grant(name, needed, holder) for name, needed in self.flows.grants.items()}
        return await self.serve_token(fields, self.flows.client_id, grants)

    def _grant(self, name: str, needed: tuple[str, ...], holder: str) -> Grant:
        def grant(fields: Mapping[str, Any]) -> dict[str, Any]:
            for one in needed:
                if not fields.get(one):
                    raise oauth_error("invalid_request", f"{one} is missing")
            if name == "refresh_token":
                rotated = self.tokens.rotate(str(fields.get("refresh_token")), holder)
                self.refreshes += 1
                return rotated
            if name == DEVICE_GRANT:
                self.devices.redeem(fields, holder)
                return self.tokens.granted(holder)
            return self.tokens.granted(holder, self.codes.redeem(fields))

        return grant

    async def _new_device(self, request: web.Request) -> web.Response:
        holder = self._holder(request)
        fields = await form_fields(request)
        if not self.options.device_enabled:
            raise detail("Not Found", 404)
        check_client(fields, self.flows.client_id)
        if self.flows.scope and self.flows.scope not in str(fields.get("scope", "")).split():
            raise oauth_error("invalid_scope", f"{self.flows.scope} is needed")
        return overlaid(self.devices.new(self.tokens.host.origin + self.flows.page, holder), self.device_members)

    def _holder(self, request: web.Request) -> str:
        holder = self.flows.holder(request)
        self.holders.append(holder)
        return holder


def check_client(fields: Mapping[str, Any], client_id: str, status: int = 401) -> None:
    """Raises Refused for an unknown program."""
    if fields.get("client_id") != client_id:
        raise oauth_error("invalid_client", "unknown client_id", status)


def overlaid(body: Mapping[str, Any], changes: Mapping[str, Any]) -> web.Response:
    """The body with these changes; None drops a member."""
    return web.json_response({name: value for name, value in {**body, **changes}.items() if value is not None})


async def sign_in_page(_request: web.Request) -> web.Response:
    """The page on which a device code would be entered."""
    page = (
        "<!doctype html><title>Sandbox sign-in</title><h1>Sandbox sign-in</h1>"
        "<p>This is a simulated account on your own machine. There is nothing to type in: the program that shows "
        "you a code is signed in by itself after a moment.</p>"
    )
    return web.Response(text=page, content_type="text/html")


async def form_fields(request: web.Request) -> dict[str, Any]:
    """The fields of a form. Raises Refused."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise detail("Unsupported Media Type", 415)
    return {name: value for name, value in (await request.post()).items() if isinstance(value, str)}


async def json_fields(request: web.Request) -> dict[str, Any]:
    """The members of a JSON object. Raises Refused."""
    if request.content_type != "application/json":
        raise detail("Unsupported Media Type", 415)
    try:
        fields = json.loads(await request.read())
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise oauth_error("invalid_request", "a JSON object is needed")
    return fields


async def any_fields(request: web.Request) -> dict[str, Any]:
    """Form fields, or the members of a JSON body."""
    return await (json_fields if request.content_type == "application/json" else form_fields)(request)


class AccountUpstream(Upstream):
    """An upstream with a sign-in service: `issuer`. `tokens` are the ones it issued."""

    tokens: Tokens
    issuer: TokenEndpoint

    @property
    def refreshes(self) -> int:
        """The number of successfully exchanged refresh tokens."""
        return self.issuer.refreshes

    def revoke_access(self) -> None:
        """Revokes all access tokens: the next request gets a 401."""
        self.tokens.revoke_access()

    def sign_in(self, lifetime_s: int | None) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """A new token response, and what a client stores besides the tokens."""
        return self.tokens.issue(lifetime_s), {}

    def stored_credential(self, lifetime_s: int | None = None, expires_ms: int | None = None) -> dict[str, Any]:
        """A fresh sign-in as a client stores it, see `Tokens.stored`. A negative lifetime: an expired token."""
        issued, members = self.sign_in(lifetime_s)
        return {**self.tokens.stored(issued, lifetime_s, expires_ms), **members}

    def credentials(self, lifetime_s: int | None, expires_ms: int | None) -> dict[str, str]:
        return {"auth.json": json.dumps(self.stored_credential(lifetime_s, expires_ms), indent=2) + "\n"}
