"""The settings of the toy provider."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.settings import integer, row, url


@dataclass(frozen=True)
class ToySettings:
    base_url: str = row("p6.baseUrl", "PROXY_P6_BASE_URL", "https://toys.example/v1", url, "The API of p6.")
    max_tokens: int = row("p6.maxTokens", "PROXY_P6_MAX_TOKENS", 1000, integer(1, 4000), "Longest answer of p6.")
