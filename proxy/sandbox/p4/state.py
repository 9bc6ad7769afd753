"""The state of the simulated P4: what its routes share, and what tests may look at and change."""

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
    """How the simulated subscription behaves. All may be changed while it runs.

    `needs_session` and `tidy_client` switch the session rule and the rules in `gateway`. `check_signatures` makes
    the messages wire refuse thoughts that it did not sign, `refuse_images` the chat wire refuse pictures for a model
    without eyes (else it does not look at them). `cost_comes` is where the cost frame stands: "together" with the end
    of the answer in one write, "later", or "none". `usage_places`: see ChatAnswer. `usage` is how many percent of
    each window are used; at 100 it is told to be limited, which by itself refuses nothing.
    """

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
    """`usage_requests` are kept like `requests`, `clients` what each request for an answer said of its client. There is
    no sign-in: the key is a setting."""

    options: P4Options

    def __init__(self, host: Host, options: P4Options, tables: Tables) -> None:
        super().__init__(host, options, tables)
        self.usage_requests: deque[Received] = deque(maxlen=KEPT_REQUESTS)
        self.clients: deque[Mapping[str, str]] = deque(maxlen=KEPT_REQUESTS)

    def trace_headers(self) -> dict[str, str]:
        """The gateway lets no header of a provider through."""
        return {"cache-control": "no-cache"}

    def encrypted(self, item_id: str, model: str) -> str:
        return encrypt(self.options.account_id, item_id)

    def settings(self) -> dict[str, str]:
        return {"PROXY_P4_BASE_URL": f"{self.host.origin}{API_PATH}", "PROXY_P4_API_KEY": self.options.api_key}
