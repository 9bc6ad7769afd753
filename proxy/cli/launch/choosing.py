"""Which model a client begins with: of whom somebody is signed in to, or what the user names."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from proxy.cli.launch.client_environment import Served
from proxy.config import Config, ConfigError
from proxy.core.invalid import cut
from proxy.core.routing import Catalog, normalise_model, proposal, route, without_claude
from proxy.errors import PROGRAM
from proxy.providers.entry import Entry, named


class UnknownModel(ConfigError):
    """Nobody serves it."""


def first_entry(providers: Sequence[Entry], config: Config, usable: Collection[str]) -> Entry:
    """The provider that serves aliases, when somebody is signed in to it; else the first of those; else the first of
    all.

    usable  labels of those that requests can be sent with
    """
    known = [entry for entry in providers if entry.build is not None and entry.label in usable]
    return min(known, key=lambda entry: entry.label != config.alias_provider, default=providers[0])


def served_model(url: str, config: Config, providers: Sequence[Entry], first: Entry, model: str | None) -> Served:
    """What a client uses that begins with a model.

    first  the provider whose main model it is, where the user names none
    model  a name of `models`, or a provider, whose main model is meant. Raises ConfigError when nobody knows it.
    """
    entry = first if model is None else named(model, providers)
    if entry is not None:
        catalog = entry.catalog_now(config)
        chosen = catalog.main
    else:
        chosen = model or ""
        catalog = _catalog_of(chosen, config, providers, first)
    key = config.api_key.reveal() if config.api_key else ""
    return Served(url, key, catalog, chosen, catalog.label == config.alias_provider)


def _catalog_of(model: str, config: Config, providers: Sequence[Entry], first: Entry) -> Catalog:
    catalogs = [entry.catalog_now(config) for entry in providers if entry.build is not None]
    plain = without_claude(normalise_model(model), catalogs)
    found = route(plain, catalogs, alias_provider=first.label)  # Claude Code is told what its own names mean
    if found is None:
        near = proposal(cut(plain), catalogs, config.alias_provider)
        raise UnknownModel(
            f'nobody serves the model "{cut(model)}". {near or f"`{PROGRAM} models --full` lists all that there are"}'
        )
    return next(catalog for catalog in catalogs if catalog.label == found.label)
