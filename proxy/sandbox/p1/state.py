"""The state of the simulated P1: shared by its routes, read and changed by tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proxy.sandbox.oauth.issuer import AccountUpstream
from proxy.sandbox.p1.issuer import CodexIssuer, TokenBook
from proxy.sandbox.p1.options import P1Options
from proxy.sandbox.p1.socket.link import Sockets
from proxy.sandbox.play.script import Tables
from proxy.sandbox.upstream import KEPT_REQUESTS, Host, Received
from proxy.sandbox.wires.encrypted_content import encrypt
from proxy.sandbox.wires.responses.quota import Quota

CODEX_PATH = "/backend-api/codex"


class P1(AccountUpstream):
    """The simulated account. `searches` are kept like `requests`. The requests include frames of sockets, and those for
    pictures and transcripts, whose body has the size and digest of each file instead of its bytes.

    `sockets` has every upgrade and its events; `routings` counts the questions where the workspace is served."""

    options: P1Options
    tokens: TokenBook
    issuer: CodexIssuer

    def __init__(self, host: Host, options: P1Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.tokens = TokenBook(options.account_id, options.email, options.quota.plan, options.access_lifetime_s, host)
        self.issuer = CodexIssuer(self.tokens, options)
        self.sockets = Sockets(host.clock)
        self.routings = 0
        self.searches: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.others: list[P1] = []

    def second(self, account_id: str = "acct-second") -> P1:
        """Another account at the service, recognised by its tokens, with its own requests, script, quota and
        sockets."""
        options = replace(self.options, account_id=account_id, email=f"{account_id}@example.com", quota=Quota())
        other = P1(self.host, options, self.script.tables)
        self.others.append(other)
        return other

    def asked(self, headers: Mapping[str, str]) -> P1:
        """The account whose token a request carries; this one for unknown tokens."""
        access = headers.get("authorization", "").partition(" ")[2]
        return next((other for other in self.others if other.tokens.accepts(access)), self)

    def trace_headers(self) -> dict[str, str]:
        request_id = self.ids.new("req")
        return {"x-request-id": request_id, "x-oai-request-id": request_id, "cf-ray": f"{request_id[-16:]}-SBX"}

    def encrypted(self, item_id: str, model: str) -> str:
        return encrypt(self.options.account_id, item_id)

    def account_headers(self) -> dict[str, str]:
        """Headers of every good answer, and of a 101."""
        return {
            "x-codex-turn-state": self.ids.new("turn"),
            "x-models-etag": '"sandbox"',
            "x-reasoning-included": "true",
            **self.options.quota.headers(self.clock()),
        }

    def settings(self) -> dict[str, str]:
        origin = self.host.origin
        return {
            "PROXY_P1_BASE_URL": f"{origin}{CODEX_PATH}/responses",
            "PROXY_P1_IMAGES_BASE_URL": f"{origin}{CODEX_PATH}",
            "PROXY_P1_TRANSCRIPTIONS_BASE_URL": f"{origin}/backend-api",
            "PROXY_P1_ISSUER": origin,
        }

    def sign_in(self, lifetime_s: int | None) -> tuple[dict[str, Any], Mapping[str, Any]]:
        return self.tokens.issue(lifetime_s), {"accountId": self.options.account_id}
