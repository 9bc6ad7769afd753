"""What the program knows of P2 before it uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.providers.entry import Entry
from proxy.providers.p2_kimi.catalog import CATALOG, catalog_of
from proxy.providers.p2_kimi.settings import KimiSettings

if TYPE_CHECKING:
    from proxy.providers.contract import Account, AccountContext, Provider, Services


def _provider(services: Services) -> Provider:
    from proxy.providers.p2_kimi.provider import KimiProvider

    return KimiProvider(services)


def _account(context: AccountContext) -> Account:
    from proxy.providers.p2_kimi.account.commands import KimiAccount

    return KimiAccount(context)


KIMI = Entry(
    CATALOG,
    product="Kimi Code",
    state="served: tools, images, thinking",
    build=_provider,
    settings=KimiSettings,
    account=_account,
    sign_in="with a code",
    adding=catalog_of,
    examples={"chat": "kimi-for-coding"},
)
