"""What the program knows of P3 before it uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.providers.entry import Entry
from proxy.providers.p3_grok.catalog import CATALOG, catalog_of
from proxy.providers.p3_grok.settings import GrokSettings

if TYPE_CHECKING:
    from proxy.providers.contract import Account, AccountContext, Provider, Services


def _provider(services: Services) -> Provider:
    from proxy.providers.p3_grok.provider import GrokProvider

    return GrokProvider(services)


def _account(context: AccountContext) -> Account:
    from proxy.providers.p3_grok.account.commands import GrokAccount

    return GrokAccount(context)


GROK = Entry(
    CATALOG,
    product="Grok",
    state="served: tools, thinking, web and X search; images by a setting",
    build=_provider,
    settings=GrokSettings,
    account=_account,
    sign_in="with a browser, here or (`--paste`) elsewhere, or with a code on another device: `--device`",
    adding=catalog_of,
    examples={"responses": "grok-4.6"},
)
