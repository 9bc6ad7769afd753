"""The state of the simulated P2: what its routes share, and what tests may look at and change."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from proxy.sandbox.oauth.account import AccountUpstream
from proxy.sandbox.p2.issuer import DeviceIssuer, DeviceTokens
from proxy.sandbox.p2.options import P2Options
from proxy.sandbox.play.script import Tables
from proxy.sandbox.recorder import KEPT_REQUESTS, Received
from proxy.sandbox.upstream import Host

API_PATH = "/coding/v1"


class P2(AccountUpstream):
    """`service_requests` are those for a search or a page, kept like `requests`. `older_members` counts the members
    that the vendor's older client sent and the newer one has other words for; they are still taken."""

    options: P2Options
    tokens: DeviceTokens
    issuer: DeviceIssuer

    def __init__(self, host: Host, options: P2Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.tokens = DeviceTokens(options.user_id, options.access_lifetime_s, host)
        self.issuer = DeviceIssuer(self.tokens, options)
        self.service_requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.older_members: Counter[str] = Counter()

    def trace_headers(self) -> dict[str, str]:
        return {"x-request-id": self.ids.new("req"), "x-trace-id": self.ids.new("trace")}

    def settings(self) -> dict[str, str]:
        return {"PROXY_P2_BASE_URL": f"{self.host.origin}{API_PATH}", "PROXY_P2_OAUTH_HOST": self.host.origin}

    def sign_in(self, lifetime_s: int | None) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Of `options.device_id`."""
        issued = self.tokens.issue(self.options.device_id, lifetime_s)
        return issued, {"scope": issued["scope"], "userId": self.tokens.user_id}

    def credentials(self, lifetime_s: int | None, expires_ms: int | None) -> dict[str, str]:
        """With the `device_id` that they are bound to."""
        return {**super().credentials(lifetime_s, expires_ms), "device_id": self.options.device_id}
