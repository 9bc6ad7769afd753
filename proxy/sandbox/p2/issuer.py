"""The simulated sign-in service of P2: device authorization, polling, refresh with rotation.

Nobody is asked: a device code is approved after the polls that `options.device_answers` lists.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.endpoint import (
    KEPT_REQUESTS,
    MAX_PENDING,
    TokenEndpoint,
    form_fields,
    new_user_code,
    oauth_error,
    sign_in_page,
)
from proxy.sandbox.oauth.tokens import remember
from proxy.sandbox.p2.headers import DEVICE_ID, device_fault
from proxy.sandbox.p2.options import P2Options
from proxy.sandbox.p2.tokens import CLIENT_ID, DeviceTokens

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

#: What a poll that gives no token is answered with, beside the code itself.
_DESCRIPTIONS = {
    "authorization_pending": "The authorization request is still pending.",
    "slow_down": "Polling too fast.",
    "expired_token": "The device code has expired.",
    "access_denied": "The user denied the request.",
}

#: These end a sign-in.
_FINAL = ("expired_token", "access_denied")


@dataclass(slots=True)
class _DeviceAuthorization:
    device_id: str
    ends: float  # epoch seconds
    answers: deque[str]  # to the next polls, before the approval
    interval_s: float
    last_poll: float | None = None


class DeviceIssuer(TokenEndpoint):
    """`deny` makes the user refuse; `devices` tells the device id of every call, oldest first."""

    def __init__(self, tokens: DeviceTokens, options: P2Options) -> None:
        super().__init__()
        self._tokens = tokens
        self._options = options
        self._host = tokens.host
        self.deny = False
        self.devices: deque[str] = deque(maxlen=KEPT_REQUESTS)
        self._pending: dict[str, _DeviceAuthorization] = {}

    def recover(self) -> None:
        super().recover()
        self.deny = False

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
        options = self._options
        code, user_code = f"dc_{secrets.token_urlsafe(24)}", new_user_code()
        ends = self._host.clock() + options.device_lifetime_s
        device = _DeviceAuthorization(device_id, ends, deque(options.device_answers), options.device_interval_s)
        remember(self._pending, code, device, MAX_PENDING)
        page = f"{self._host.origin}/kimi/device"
        return web.json_response(
            {
                "user_code": user_code,
                "device_code": code,
                "verification_uri": page,
                "verification_uri_complete": f"{page}?user_code={user_code}",
                "expires_in": options.device_lifetime_s,
                "interval": options.device_interval_s,
            }
        )

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
        code = str(fields.get("device_code"))
        device = self._pending.get(code)
        if device is None:
            raise oauth_error("invalid_grant", "The device code is unknown or was used.")
        if device.device_id != device_id:
            raise oauth_error("invalid_grant", "The device code belongs to another device.")
        answer = self._answer(device)
        if answer in _FINAL or answer is None:
            del self._pending[code]
        if answer is not None:
            status = 400 if answer in _FINAL else self._options.pending_status
            raise oauth_error(answer, _DESCRIPTIONS.get(answer, answer), status)
        return self._tokens.issue(device_id)

    def _answer(self, device: _DeviceAuthorization) -> str | None:
        """The error for this poll; None once the user has approved."""
        now, last = self._host.clock(), device.last_poll
        device.last_poll = now
        if now >= device.ends:
            return "expired_token"
        if self.deny:
            return "access_denied"
        if self._options.watch_interval and last is not None and now - last < device.interval_s:
            device.interval_s += 5
            return "slow_down"
        return device.answers.popleft() if device.answers else None

    def _refresh(self, fields: Mapping[str, Any], device_id: str) -> dict[str, Any]:
        tokens = self._tokens.rotate(str(fields.get("refresh_token")), device_id)
        self.refreshes += 1
        return tokens
