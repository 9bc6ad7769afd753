"""The state of the simulated P4: shared by its routes, read and changed by tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.sandbox.play.script import Tables
from proxy.sandbox.upstream import KEPT_REQUESTS, Host, Options, Received, Upstream
from proxy.sandbox.wires.encrypted_content import encrypt

API_PATH = "/zen/go/v1"


@dataclass(slots=True)
class P4Options(Options):
    """Switches of the simulated subscription. All may be changed while it runs.

    `needs_session` and `tidy_client` switch the session rule and the rules in `gateway`. `check_signatures` makes the
    messages wire refuse thoughts that it did not sign. `refuse_images` makes the chat wire refuse pictures for a model
    without vision (else it ignores them). `cost_comes` is when the cost frame comes: "together" with the end of the
    answer in one write, "later", or "none". `usage_places`: see ChatAnswer. `usage` is how many percent of each window
    are used; at 100 it is reported as limited, which by itself refuses nothing."""

    api_key: str = "sk-sandbox-opencode-go"
    account_id: str = "go-sandbox"
    needs_session: bool = True
    tidy_client: bool = True
    check_signatures: bool = False
    refuse_images: bool = False
    subscribed: bool = True
    blocked_models: frozenset[str] = frozenset()
    cost_comes: str = "together"
    usage_places: tuple[str, ...] = ("own",)
    usage: dict[str, float] = field(default_factory=lambda: {"rolling": 12.5, "weekly": 34, "monthly": 47})
    context_limit: int = 0


class P4(Upstream):
    """The simulated gateway. `usage_requests` are kept like `requests`, `clients` are the client headers of each
    request for an answer. There is no sign-in: the key is a setting."""

    options: P4Options

    def __init__(self, host: Host, options: P4Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.usage_requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.clients: deque[Mapping[str, str]] = deque(maxlen=KEPT_REQUESTS)

    def trace_headers(self) -> dict[str, str]:
        """No headers: the gateway removes those of a provider."""
        return {"cache-control": "no-cache"}

    def encrypted(self, item_id: str, model: str) -> str:
        return encrypt(self.options.account_id, item_id)

    def settings(self) -> dict[str, str]:
        return {"PROXY_P4_BASE_URL": f"{self.host.origin}{API_PATH}", "PROXY_P4_API_KEY": self.options.api_key}
