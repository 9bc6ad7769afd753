"""The entry of the toy provider: all that the registry would get."""

from __future__ import annotations

from proxy.core.routing import Catalog
from proxy.later import Later
from proxy.providers.entry import Entry
from toy_provider.settings import ToySettings

LABEL = "p6"
CATALOG = Catalog(LABEL, "toy", ("toy-large", "toy-small"), main="toy-large", small="toy-small", followed=True)


TOY = Entry(
    CATALOG,
    product="Toy Box",
    state="served to tests",
    build=Later("toy_provider.provider:ToyProvider"),
    settings=ToySettings,
    account=Later("toy_provider.account:ToyAccount"),
    sign_in="at once",
    examples={"chat": "toy-large"},
)
