"""The description of a provider that is known before its use: each folder exports one entry, the registry lists them.

Settings, command line, routing and documents are built from entries, so an entry is light to import: the provider and
its account are loaded when they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxy.core.invalid import cut
from proxy.core.routing import Added, Catalog, foreign_names, normalise_model, route
from proxy.settings import SEARCH_WORDS, UnfitValue, check_model, searcher_of

if TYPE_CHECKING:
    from proxy.config import Config
    from proxy.core.models import ModelList
    from proxy.providers.accounts.account import Account, AccountContext
    from proxy.providers.contract import Provider, Services


@dataclass(frozen=True, slots=True)
class Entry:
    """A provider.

    product   the subscription, as its vendor calls it
    state     what is served, in words
    build     makes the provider; None while it is not served: its names are known, and answered with the catalogue
    settings  the frozen dataclass of its rows, see `proxy.settings`
    account   makes its account, for the command line
    sign_in   how a user signs in, in words
    adding    the catalogue with ids that the settings add, which the section then has as `models`, and with what the
              service offers
    own       folder of a named account -> what turns the common settings into the account's, without another account's
              keys and tokens, see `OwnSettings`; None: the settings have none
    key       the variable of the key that replaces a sign-in, "" where users sign in
    searches  its place among the providers that search for models of others, from 1; 0: it does not search for them
    examples  a model for each wire that the provider is reached over: {"chat": "kimi-for-coding"}
    offered, others  what the service offers, and the entries whose names it must not take, see `offering`
    bridges   whether its models use the client's tools as their own: in strict mode tools of certain names only
    blind     whether the settings keep pictures from its models
    """

    catalog: Catalog
    product: str
    state: str = "names are known, not served yet"
    build: Callable[[Services], Provider] | None = None
    settings: type[Any] | None = None
    account: Callable[[AccountContext], Account] | None = None
    sign_in: str = ""
    adding: Callable[[Added, ModelList | None], Catalog] | None = None
    own: Callable[[Path], Callable[[Config], Config]] | None = None
    key: str = ""
    searches: int = 0
    examples: Mapping[str, str] = field(default_factory=dict)
    offered: ModelList | None = None
    others: tuple[Entry, ...] = ()
    bridges: bool = False
    blind: Callable[[Config], bool] = lambda _config: False

    @property
    def label(self) -> str:
        return self.catalog.label

    def catalog_now(self, config: Config, offered: ModelList | None = None) -> Catalog:
        """The catalogue with the models that the settings add, and with what the service offers: `offered`, or what
        `offering` gave. No list takes another provider's name, or an alias."""
        if self.adding is None or self.settings is None:
            return self.catalog
        added = config.section(self.settings).models
        table, known = self.adding(added, None), offered or self.offered
        if known is None:
            return table
        found = self.adding(added, known)
        return found.without(foreign_names(found, table, [other.catalog_now(config) for other in self.others]))

    def offering(self, offered: ModelList | None, entries: Iterable[Entry]) -> Entry:
        """The entry with what its service offers, beside these entries."""
        others = tuple(entry for entry in entries if entry.label != self.label)
        return self if offered is None else replace(self, offered=offered, others=others)

    @property
    def title(self) -> str:
        """The name that users see."""
        return f"{self.catalog.label} ({self.catalog.service})"


class OwnSettings:
    """The common settings with some values of the account's own. Made again only when one of them changes.

    section  the settings class that has these values
    values   returns the current values by field
    """

    def __init__(self, section: type[Any], values: Callable[[], Mapping[str, Any]]) -> None:
        self._section = section
        self._values = values
        self._made: tuple[Config, Mapping[str, Any], Config] | None = None

    def __call__(self, config: Config) -> Config:
        values = self._values()
        if self._made is None or self._made[0] is not config or self._made[1] != values:
            self._made = config, values, config.changed(self._section, **values)
        return self._made[2]


def searchers(providers: Iterable[Entry]) -> list[Entry]:
    """The providers that search for models of others, the first choice first."""
    return sorted((entry for entry in providers if entry.searches), key=lambda entry: entry.searches)


def check_searcher(name: str, providers: Iterable[Entry], config: Config) -> None:
    """Raises UnfitValue for a setting `search` that names neither a provider that searches nor its model."""
    if name not in SEARCH_WORDS:
        providers = list(providers)
        able = [entry.label for entry in searchers(providers)]
        searcher_of(name, [entry.catalog_now(config) for entry in providers], able)


def check_seeing_model(name: str, providers: Iterable[Entry], config: Config) -> None:
    """Raises UnfitValue for a name that is no model, or one that is known to be sent no pictures."""
    known = [(entry, entry.catalog_now(config)) for entry in providers]
    catalogs = [catalog for _, catalog in known]
    check_model(name, catalogs)
    called = normalise_model(name)
    found = route(called, catalogs, alias_provider=config.alias_provider) if name else None
    for entry, catalog in known:
        blind = entry.blind(config) or catalog.facts_of(called).sees is False
        if blind and found is not None and entry.label == found.label:
            raise UnfitValue("expected a model that takes pictures")


def account_titles(providers: Iterable[Entry]) -> str:
    """The titles of the providers with an account, for a message."""
    return ", ".join(entry.title for entry in providers if entry.account is not None)


def named(name: str, providers: Iterable[Entry]) -> Entry | None:
    """The provider with this label or service name."""
    return next((entry for entry in providers if name in (entry.catalog.label, entry.catalog.service)), None)


def doubtful(config: Config, providers: Sequence[Entry]) -> list[str]:
    """Warnings about models in the settings: another provider has them too, or no list has them."""
    catalogs = [entry.catalog_now(config) for entry in providers]
    warnings = []
    for entry, catalog in zip(providers, catalogs, strict=True):
        for model in (model for model in catalog.models if model not in entry.catalog.models):
            found = route(model, catalogs, alias_provider="")
            if found is not None and found.label != entry.label:
                warnings.append(f"{entry.label}.models: {cut(model)} is a model of {found.label}, which serves it")
        replacing = getattr(config.section(entry.settings), "model", None) if entry.settings is not None else None
        if replacing and catalog.resolved(replacing) not in catalog.models:
            warnings.append(f"{entry.label}.model: {cut(replacing)} is in no list; it is sent like the nearest that is")
    return warnings
