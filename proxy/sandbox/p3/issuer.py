"""The simulated sign-in service of P3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.sandbox.oauth.endpoint import TokenEndpoint, form_fields
from proxy.sandbox.p3.options import P3Options
from proxy.sandbox.p3.tokens import CLIENT_ID, GrokTokens


class GrokIssuer(TokenEndpoint):
    """Discovery, and the token endpoint."""

    def __init__(self, tokens: GrokTokens, options: P3Options) -> None:
        super().__init__()
        self._tokens = tokens
        self._options = options

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/.well-known/openid-configuration", self._discover),
            web.post("/oauth2/token", self._token),
        ]

    async def _discover(self, _request: web.Request) -> web.Response:
        origin = self._tokens.host.origin
        return web.json_response({"issuer": origin, "token_endpoint": f"{origin}/oauth2/token"})

    async def _token(self, request: web.Request) -> web.Response:
        return await self.serve_token(await form_fields(request), CLIENT_ID, {"refresh_token": self._refresh})

    def _refresh(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        tokens = self._tokens.rotate(str(fields.get("refresh_token")))
        self.refreshes += 1
        return tokens
