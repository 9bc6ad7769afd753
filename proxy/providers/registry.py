"""All providers, one line each. A new one is a folder and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proxy.core.routing import Catalog
from proxy.providers import catalogs
from proxy.providers.base import Provider, Services
from proxy.providers.p1_codex import catalog as p1_catalog


@dataclass(frozen=True, slots=True)
class Entry:
    """`build` is None while a provider is not served yet: its names are known, and answered with the catalogue."""

    catalog: Catalog
    build: Callable[[Services], Provider] | None


def _p1(services: Services) -> Provider:
    from proxy.providers.p1_codex.provider import CodexProvider

    return CodexProvider(services)


PROVIDERS: tuple[Entry, ...] = (
    Entry(p1_catalog.CATALOG, _p1),
    Entry(catalogs.P2, None),
    Entry(catalogs.P3, None),
    Entry(catalogs.P4, None),
    Entry(catalogs.P5, None),
)

#: what a user may type -> label
LABELS: dict[str, str] = {
    name: entry.catalog.label for entry in PROVIDERS for name in (entry.catalog.label, entry.catalog.service)
}
