"""The settings of P2: one row each."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.core.routing import Added
from proxy.providers.p2_kimi.catalog import MODELS
from proxy.settings import Rows, header, models_row, row, url


@dataclass(frozen=True)
class KimiSettings(Rows):
    """The current settings of P2: `config.section(KimiSettings)`."""

    base_url: str = row("p2.baseUrl", "PROXY_P2_BASE_URL", "https://api.kimi.com/coding/v1", url, "The API of p2.")
    oauth_host: str = row("p2.oauthHost", "PROXY_P2_OAUTH_HOST", "https://auth.kimi.com", url, "Where p2 signs in.")
    models: Added = models_row("p2", MODELS)
    user_agent: str | None = row(
        "p2.userAgent",
        "PROXY_P2_USER_AGENT",
        None,
        header,
        "User agent of p2; the service takes coding agents only.",
    )
