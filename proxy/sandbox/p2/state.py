"""The state of the simulated P2: shared by its routes, read and changed by tests."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.sandbox.oauth.codes import DeviceOptions
from proxy.sandbox.oauth.issuer import AccountUpstream, Issuer
from proxy.sandbox.p2.issuer import FLOWS, DeviceTokens
from proxy.sandbox.play.script import Tables
from proxy.sandbox.upstream import KEPT_REQUESTS, Host, Received

API_PATH = "/coding/v1"

#: Beginnings of user agents that the gateway accepts as coding agents, in lower case.
AGENTS = ("kimicli/", "kimi-code-cli/", "claude-cli/", "claude-code/", "roo-code/", "roocode/", "kilo-code/")


@dataclass(slots=True)
class P2Options(DeviceOptions):
    """Switches of the account. All may be changed while it runs.

    `one_effort` refuses `thinking` together with `reasoning_effort`, as other front ends of this vendor do.
    `usage_places`: see ChatAnswer. `context_limit` 0 is the model's own."""

    user_id: str = "u_sandbox"
    device_id: str = "5a9d0b0c0ffee0123456789abcdef012"  # of the stored sign-in
    access_lifetime_s: int = 900
    agents: tuple[str, ...] = AGENTS
    one_effort: bool = False
    usage_places: tuple[str, ...] = ("choice", "own")
    context_limit: int = 0


class P2(AccountUpstream):
    """The simulated account. `service_requests` are those for a search or a page, kept like `requests`. `older_members`
    counts members of the vendor's older client that the newer one has renamed; they are still accepted."""

    options: P2Options
    tokens: DeviceTokens
    issuer: Issuer

    def __init__(self, host: Host, options: P2Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.tokens = DeviceTokens(options.user_id, options.access_lifetime_s, host)
        self.issuer = Issuer(FLOWS, self.tokens, options)
        self.service_requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.older_members: Counter[str] = Counter()

    def trace_headers(self) -> dict[str, str]:
        return {"x-request-id": self.ids.new("req"), "x-trace-id": self.ids.new("trace")}

    def settings(self) -> dict[str, str]:
        return {"PROXY_P2_BASE_URL": f"{self.host.origin}{API_PATH}", "PROXY_P2_OAUTH_HOST": self.host.origin}

    def sign_in(self, lifetime_s: int | None) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """A sign-in of `options.device_id`."""
        issued = self.tokens.issue(lifetime_s, self.options.device_id)
        return issued, {"scope": issued["scope"], "userId": self.tokens.user_id}

    def credentials(self, lifetime_s: int | None, expires_ms: int | None) -> dict[str, str]:
        """The credentials with the `device_id` that they are bound to."""
        return {**super().credentials(lifetime_s, expires_ms), "device_id": self.options.device_id}
