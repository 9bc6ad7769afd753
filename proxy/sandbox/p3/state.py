"""The state of the simulated P3: what its routes share, and what tests may look at and change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.sandbox.oauth.account import AccountUpstream
from proxy.sandbox.p3.catalog import MODELS, reader_of
from proxy.sandbox.p3.issuer import GrokIssuer
from proxy.sandbox.p3.options import P3Options
from proxy.sandbox.p3.reasoning import encrypt_for
from proxy.sandbox.p3.tokens import GrokTokens
from proxy.sandbox.play.script import Tables
from proxy.sandbox.upstream import Host

API_PATH = "/v1"


class P3(AccountUpstream):
    """The sign-in service lives at the same address as the API."""

    options: P3Options
    tokens: GrokTokens
    issuer: GrokIssuer

    def __init__(self, host: Host, options: P3Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.tokens = GrokTokens(options.user_id, options.access_lifetime_s, host)
        self.issuer = GrokIssuer(self.tokens, options)

    def trace_headers(self) -> dict[str, str]:
        return {"x-request-id": self.ids.new("req"), "x-models-etag": '"sandbox"'}

    def encrypted(self, item_id: str, model: str) -> str:
        return encrypt_for(reader_of(self.options.user_id, model), item_id, "") if model in MODELS else ""

    def settings(self) -> dict[str, str]:
        origin = self.host.origin
        return {"PROXY_P3_BASE_URL": f"{origin}{API_PATH}", "PROXY_P3_ISSUER": origin}

    def sign_in(self, lifetime_s: int | None) -> tuple[dict[str, Any], Mapping[str, Any]]:
        return self.tokens.issue(lifetime_s), {}
