"""P5's sign-in service alone, simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.sandbox.oauth.account import AccountUpstream
from proxy.sandbox.p5.issuer import CursorIssuer
from proxy.sandbox.p5.options import P5Options
from proxy.sandbox.p5.tokens import CursorTokens
from proxy.sandbox.play.script import Tables
from proxy.sandbox.upstream import Host, Simulator


class Account(AccountUpstream):
    options: P5Options
    tokens: CursorTokens
    issuer: CursorIssuer

    def __init__(self, host: Host, options: P5Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.tokens = CursorTokens(options, host)
        self.issuer = CursorIssuer(self.tokens, options)

    def settings(self) -> dict[str, str]:
        return {"PROXY_P5_BASE_URL": self.host.origin, "PROXY_P5_WEBSITE_URL": self.host.origin}

    def sign_in(self, lifetime_s: int | None) -> tuple[dict[str, Any], Mapping[str, Any]]:
        return self.tokens.issue(lifetime_s), {}


ACCOUNT = Simulator("p5", Account, P5Options, (), lambda one: one.issuer.routes())
