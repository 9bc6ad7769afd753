"""The settings of P4: one row each."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.core.hiding.secret import Secret
from proxy.core.routing import Added
from proxy.providers.p4_opencode.catalog import MODELS, bare
from proxy.settings import Rows, models_row, row, secret, url


@dataclass(frozen=True)
class OpenCodeSettings(Rows):
    """The current settings of P4: `config.section(OpenCodeSettings)`."""

    api_key: Secret | None = row(
        "p4.apiKey", "PROXY_P4_API_KEY OPENCODE_API_KEY", None, secret, "API key of p4.", secret=True
    )
    base_url: str = row("p4.baseUrl", "PROXY_P4_BASE_URL", "https://opencode.ai/zen/go/v1", url, "The API of p4.")
    models: Added = models_row("p4", MODELS, bare)
