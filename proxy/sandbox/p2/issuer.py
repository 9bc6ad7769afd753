"""The simulated sign-in service of P2, its tokens, and what every request must say of its device and program.

It knows device authorization, polling, and refresh with rotation; each token is good on one device only. Nobody is
asked: a device code is approved after the polls that `options.device_answers` lists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.devices import DEVICE_GRANT, DeviceCodes
from proxy.sandbox.oauth.endpoint import KEPT_REQUESTS, TokenEndpoint, form_fields, oauth_error, sign_in_page
from proxy.sandbox.oauth.tokens import LIVE, MAX_TOKENS, Tokens, remember
from proxy.sandbox.p2.options import P2Options
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import Refused, invalid

DEVICE_ID = "x-msh-device-id"

#: All of these come with every request, to the sign-in service as well.
DEVICE_HEADERS = (
    "x-msh-platform",
    "x-msh-version",
    "x-msh-device-name",
    "x-msh-device-model",
    "x-msh-os-version",
    DEVICE_ID,
)

NOT_AN_AGENT = (
    "Kimi For Coding is currently only available for Coding Agents such as Kimi CLI, Claude Code, Roo Code, "
    "Kilo Code, etc."
)


def device_fault(headers: Mapping[str, str]) -> str | None:
    """What is wrong with the device headers: one is missing, or is not printable ASCII."""
    for name in DEVICE_HEADERS:
        value = headers.get(name, "")
        if not value.strip():
            return f"missing header {name}"
        if not (value.isascii() and value.isprintable()):
            return f"header {name} is not printable ASCII"
    return None


def check_caller(headers: Mapping[str, str], tokens: DeviceTokens, agents: Sequence[str]) -> None:
    """A live token of this very device, and the user agent of a coding agent. Raises Refused."""
    scheme, _, access = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not tokens.accepts(access):
        raise unauthorized()
    product = headers.get("user-agent", "").lower()
    if device_fault(headers) is not None or not product.startswith(tuple(agents)):
        raise invalid(NOT_AN_AGENT, status=403, kind="access_terminated_error")
    if tokens.device_of(access) != headers[DEVICE_ID]:
        raise unauthorized()


def unauthorized() -> Refused:
    return invalid(
        "The API Key appears to be invalid or may have expired. Please verify your credentials and try again.",
        status=401,
        kind="invalid_authentication_error",
    )


CLIENT_ID = "17e5f671-d194-4dfb-9706-5516cb48c098"

_DEAD = "invalid_grant"


class DeviceTokens(Tokens):
    """The tokens of one user."""

    def __init__(self, user_id: str, lifetime_s: int, host: Host) -> None:
        super().__init__(lifetime_s, host)
        self.user_id = user_id
        self.scope = "kimi-code"
        self._devices: dict[str, str] = {}  # token, access or refresh -> device id

    def issue(self, device_id: str, lifetime_s: int | None = None) -> dict[str, Any]:
        """A new token response, see `new_pair`, with the `scope`."""
        claims = {"user_id": self.user_id, "device_id": device_id, "scope": self.scope, **self.times(lifetime_s)}
        pair = self.new_pair(claims)
        for name in ("access_token", "refresh_token"):
            remember(self._devices, pair[name], device_id, 2 * MAX_TOKENS)
        return {**pair, "scope": self.scope}

    def device_of(self, token: str) -> str | None:
        """The device that the token is good on."""
        return self._devices.get(token)

    def rotate(self, refresh: str, device_id: str) -> dict[str, Any]:
        """A refresh token is good once, on its device. Raises Refused (401, `invalid_grant`)."""
        if self.device_of(refresh) not in (None, device_id):
            raise oauth_error(_DEAD, "The refresh token belongs to another device.", 401)
        if self.spend(refresh, unknown=_DEAD, used=_DEAD) != LIVE:
            raise oauth_error(_DEAD, "The provided authorization grant is invalid, expired or revoked.", 401)
        return self.issue(device_id)


class DeviceIssuer(TokenEndpoint):
    """`codes.deny` makes the user refuse; `devices` tells the device id of every call, oldest first."""

    def __init__(self, tokens: DeviceTokens, options: P2Options) -> None:
        super().__init__()
        self._tokens = tokens
        self._options = options
        self.codes = DeviceCodes(options, tokens.host.clock)
        self.devices: deque[str] = deque(maxlen=KEPT_REQUESTS)

    def recover(self) -> None:
        super().recover()
        self.codes.deny = False

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/oauth/device_authorization", self._authorize),
            web.post("/api/oauth/token", self._token),
            web.get("/kimi/device", sign_in_page),
        ]

    async def _authorize(self, request: web.Request) -> web.Response:
        device_id = self._device_id(request)
        fields = await form_fields(request)
        if fields.get("client_id") != CLIENT_ID:
            raise oauth_error("invalid_client", "unknown client_id", 401)
        return web.json_response(self.codes.new(f"{self._tokens.host.origin}/kimi/device", device_id))

    async def _token(self, request: web.Request) -> web.Response:
        device_id = self._device_id(request)
        grants = {
            DEVICE_GRANT: lambda fields: self._poll(fields, device_id),
            "refresh_token": lambda fields: self._refresh(fields, device_id),
        }
        return await self.serve_token(await form_fields(request), CLIENT_ID, grants)

    def _device_id(self, request: web.Request) -> str:
        fault = device_fault(request.headers)
        if fault is not None:
            raise oauth_error("invalid_request", fault)
        device_id = request.headers[DEVICE_ID]
        self.devices.append(device_id)
        return device_id

    def _poll(self, fields: Mapping[str, Any], device_id: str) -> dict[str, Any]:
        self.codes.redeem(fields, device_id, pending_status=self._options.pending_status)
        return self._tokens.issue(device_id)

    def _refresh(self, fields: Mapping[str, Any], device_id: str) -> dict[str, Any]:
        tokens = self._tokens.rotate(str(fields.get("refresh_token")), device_id)
        self.refreshes += 1
        return tokens
