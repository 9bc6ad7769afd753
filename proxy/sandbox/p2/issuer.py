"""The simulated sign-in service of P2: device authorization, polling, refresh with rotation.

Nobody is asked: a device code is approved after the polls that `options.device_answers` lists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.devices import DEVICE_GRANT, DeviceCodes
from proxy.sandbox.oauth.endpoint import KEPT_REQUESTS, TokenEndpoint, form_fields, oauth_error, sign_in_page
from proxy.sandbox.p2.headers import DEVICE_ID, device_fault
from proxy.sandbox.p2.options import P2Options
from proxy.sandbox.p2.tokens import CLIENT_ID, DeviceTokens


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
