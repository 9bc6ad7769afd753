"""The model that describes pictures, as far as settings and stored sign-ins tell."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from proxy.config import Config
from proxy.core.routing import normalise_model, route
from proxy.providers.entry import Entry


def describing(providers: Sequence[Entry], config: Config) -> str:
    """The label of the provider whose model describes pictures, "" if the setting is off."""
    model, known = normalise_model(config.vision_model or ""), [entry.catalog_now(config) for entry in providers]
    found = route(model, known, alias_provider=config.alias_provider) if model else None
    return "" if found is None else found.label


def vision_lines(providers: Sequence[Entry], config: Config, usable: Collection[str]) -> list[str]:
    """Lines for the banner: a description uses another subscription's allowance, so it is never silent."""
    label = describing(providers, config)
    if not label:
        return []
    state = "" if label in usable else "  no account is signed in there, so pictures become notes"
    lines = [f"pictures for models that take none: described by {label} ({config.vision_model});"]
    return [*lines, "  it counts against that subscription (PROXY_VISION_MODEL changes it)", *filter(None, [state])]
