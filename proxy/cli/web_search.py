"""Who searches the web for models whose service does not, as far as settings and stored sign-ins tell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from proxy.config import Config
from proxy.providers.entry import Entry, searchers
from proxy.settings import SEARCH_WORDS, searcher_of


@dataclass(frozen=True, slots=True)
class WebSearch:
    """Who searches.

    label  of the provider, "" if none does
    model  named by the settings, "" for the provider's own
    ready  whether it is signed in
    """

    label: str = ""
    model: str = ""
    ready: bool = False


def web_search(providers: Sequence[Entry], config: Config, usable: Collection[str]) -> WebSearch:
    """Who searches for a model of a provider that cannot. `usable`: labels of the providers that are signed in."""
    able = [entry.label for entry in searchers(providers)]
    if config.search not in SEARCH_WORDS:
        label, model = searcher_of(config.search, [entry.catalog_now(config) for entry in providers], able)
        return WebSearch(label, model, label in usable)
    ready = [label for label in able if label in usable]
    return WebSearch(ready[0], ready=True) if ready and config.search == "auto" else WebSearch()


def search_line(found: WebSearch, config: Config) -> str:
    """One line for the banner: a search may use another subscription's allowance, so it is never silent."""
    head = "web search for models without one"
    if config.search == "off":
        return f"{head}: off (PROXY_SEARCH)"
    if not found.label:
        return f"{head}: nobody who can is signed in"
    by = f"{found.label} ({found.model})" if found.model else found.label
    state = "" if found.ready else ", which is not signed in"
    return f"{head}: {by}{state}; it counts against that subscription (PROXY_SEARCH changes it)"
