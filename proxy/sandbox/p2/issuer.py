"""The simulated sign-in service of P2, its tokens, and the required headers about device and program.

It has device authorization, polling, and refresh with rotation; each token is good on one device only. No user is
involved: a device code is approved after the polls that `options.device_answers` lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.codes import DEVICE_GRANT
from proxy.sandbox.oauth.issuer import Flows
from proxy.sandbox.oauth.tokens import MAX_TOKENS, Tokens, oauth_error, remember
from proxy.sandbox.upstream import Host
from proxy.sandbox.wires.refusal import Refused, invalid

DEVICE_ID = "x-msh-device-id"

#: Required of every request, also to the sign-in service.
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
    """The fault of the device headers: one is missing, or is not printable ASCII; None when they are right."""
    for name in DEVICE_HEADERS:
        value = headers.get(name, "")
        if not value.strip():
            return f"missing header {name}"
        if not (value.isascii() and value.isprintable()):
            return f"header {name} is not printable ASCII"
    return None


def check_caller(headers: Mapping[str, str], tokens: DeviceTokens, agents: Sequence[str]) -> None:
    """Requires a live token of this device, and the user agent of a coding agent. Raises Refused."""
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


class DeviceTokens(Tokens):
    """The tokens of one user, each bound to one device."""

    def __init__(self, user_id: str, lifetime_s: int, host: Host) -> None:
        super().__init__(lifetime_s, host)
        self.user_id = user_id
        self.scope = "kimi-code"
        self._devices: dict[str, str] = {}  # token, access or refresh -> device id

    def issue(self, lifetime_s: int | None = None, holder: str = "") -> dict[str, Any]:
        """A token response with the `scope`."""
        claims = {"user_id": self.user_id, "device_id": holder, "scope": self.scope, **self.times(lifetime_s)}
        pair = self.new_pair(claims)
        for name in ("access_token", "refresh_token"):
            remember(self._devices, pair[name], holder, 2 * MAX_TOKENS)
        return {**pair, "scope": self.scope}

    def device_of(self, token: str) -> str | None:
        """The device of a token."""
        return self._devices.get(token)

    def rotate(self, refresh: str, holder: str = "") -> dict[str, Any]:
        if self.device_of(refresh) not in (None, holder):
            raise oauth_error("invalid_grant", "The refresh token belongs to another device.", 401)
        return super().rotate(refresh, holder)

    def refused(self, state: str) -> Refused:
        return oauth_error("invalid_grant", "The provided authorization grant is invalid, expired or revoked.", 401)


def _device_id(request: web.Request) -> str:
    fault = device_fault(request.headers)
    if fault is not None:
        raise oauth_error("invalid_request", fault)
    return request.headers[DEVICE_ID]


FLOWS = Flows(
    CLIENT_ID,
    "/api/oauth/token",
    {DEVICE_GRANT: (), "refresh_token": ()},
    page="/kimi/device",
    device="/api/oauth/device_authorization",
    holder=_device_id,
)
