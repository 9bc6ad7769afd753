"""The simulated P3 account: its switches and state, shared by its routes, read and changed by tests."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.sandbox.oauth.codes import DeviceOptions
from proxy.sandbox.oauth.issuer import AccountUpstream
from proxy.sandbox.p3.catalog import MODELS, encrypt_for, reader_of
from proxy.sandbox.p3.issuer import GrokIssuer, GrokTokens
from proxy.sandbox.play.script import Tables
from proxy.sandbox.upstream import Host


@dataclass(slots=True)
class P3Options(DeviceOptions):
    """Switches of the account. All may be changed while it runs.

    `oldest_version` of the client is served, older ones get a 426. `done`: whether `[DONE]` comes after the end of an
    answer; `linger_s`: how long the connection stays open then. `gate` is why the account is not served: it signs in,
    and the settings and every refusal give that reason."""

    user_id: str = "user-sandbox"
    email: str = "sandbox@example.com"
    access_lifetime_s: int = 21_600
    device_lifetime_s: int = 1_800
    oldest_version: str = "0.1.202"
    done: bool = True
    linger_s: float = 0.02
    context_limit: int = 0
    gate: str = ""


API_PATH = "/v1"


class P3(AccountUpstream):
    """The simulated account. Its sign-in service has the address of the API."""

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
