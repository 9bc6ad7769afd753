"""The entry of the toy provider: all that the registry would get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.core.routing import Catalog
from proxy.providers.entry import Entry
from toy_provider.settings import ToySettings

if TYPE_CHECKING:
    from proxy.providers.contract import Account, AccountContext, Provider, Services

LABEL = "p6"
CATALOG = Catalog(LABEL, "toy", ("toy-large", "toy-small"), main="toy-large", small="toy-small", followed=True)


def _provider(services: Services) -> Provider:
    from toy_provider.provider import ToyProvider

    return ToyProvider(services)


def _account(context: AccountContext) -> Account:
    from toy_provider.account import ToyAccount

    return ToyAccount(context)


TOY = Entry(
    CATALOG,
    product="Toy Box",
    state="served to tests",
    build=_provider,
    settings=ToySettings,
    account=_account,
    sign_in="at once",
    examples={"chat": "toy-large"},
)
