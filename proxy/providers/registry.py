"""All providers, one line each. A new one is a folder and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proxy.core.routing import Catalog
from proxy.providers import unserved as catalogs
from proxy.providers.contract import Account, AccountContext, Provider, Services
from proxy.providers.p1_codex import catalog as p1_catalog
from proxy.providers.p1_codex.settings import CodexSettings
from proxy.providers.p2_kimi import catalog as p2_catalog
from proxy.providers.p2_kimi.settings import KimiSettings
from proxy.providers.p4_opencode import catalog as p4_catalog
from proxy.providers.p4_opencode.settings import OpenCodeSettings


@dataclass(frozen=True, slots=True)
class Entry:
    """`build` is None while a provider is not served yet: its names are known, and answered with the catalogue."""

    catalog: Catalog
    build: Callable[[Services], Provider] | None
    account: Callable[[AccountContext], Account] | None = None
    settings: type[Any] | None = None


def _p1(services: Services) -> Provider:
    from proxy.providers.p1_codex.provider import CodexProvider

    return CodexProvider(services)


def _p2(services: Services) -> Provider:
    from proxy.providers.p2_kimi.provider import KimiProvider

    return KimiProvider(services)


def _p4(services: Services) -> Provider:
    from proxy.providers.p4_opencode.provider import OpenCodeProvider

    return OpenCodeProvider(services)


def _p1_account(context: AccountContext) -> Account:
    from proxy.providers.p1_codex.account.commands import CodexAccount

    return CodexAccount(context)


def _p2_account(context: AccountContext) -> Account:
    from proxy.providers.p2_kimi.account.commands import KimiAccount

    return KimiAccount(context)


def _p4_account(context: AccountContext) -> Account:
    from proxy.providers.p4_opencode.account.commands import OpenCodeAccount

    return OpenCodeAccount(context)


PROVIDERS: tuple[Entry, ...] = (
    Entry(p1_catalog.CATALOG, _p1, _p1_account, CodexSettings),
    Entry(p2_catalog.CATALOG, _p2, _p2_account, KimiSettings),
    Entry(catalogs.P3, None),
    Entry(p4_catalog.CATALOG, _p4, _p4_account, OpenCodeSettings),
    Entry(catalogs.P5, None),
)

#: what a user may type -> label
LABELS: dict[str, str] = {
    name: entry.catalog.label for entry in PROVIDERS for name in (entry.catalog.label, entry.catalog.service)
}
