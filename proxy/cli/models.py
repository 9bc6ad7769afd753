"""`models`: one line for each provider, or everything as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from proxy.cli.command import APP, Command, Context
from proxy.cli.config_file import ConfigFile
from proxy.config import Config
from proxy.core.routing import ALIASES, Catalog, listing
from proxy.providers.entry import Entry

#: Ids of a provider that are shown by default.
SHORT = 20


def model_lines(
    providers: Iterable[Entry], config: Config, shown: int | None = SHORT, *, program: str = APP
) -> list[str]:
    """The models of the served providers. The short form only counts those with a prefix, and names the command for
    all."""
    lines = []
    for entry in providers:
        if entry.build is None:
            continue
        catalog = entry.catalog_now(config)
        models, prefixed = sorted(catalog.models), catalog.prefixed
        ids = [*models, *prefixed] if shown is None else models[:shown]
        hidden = len(models) + len(prefixed) - len(ids)
        more = f", … ({hidden} more: {program} models --full)" if hidden else ""
        lines.append(f"{entry.title}: {', '.join(ids)}{more}")
    return lines


def model_table(providers: Iterable[Entry], config: Config) -> dict[str, Any]:
    """Every model with its limits, and the models of the aliases, for programs."""
    catalogs = [entry.catalog_now(config) for entry in providers if entry.build is not None]
    by_label = {catalog.label: catalog for catalog in catalogs}
    own = by_label.get(config.alias_provider)
    return {
        "models": [_described(model, by_label[label]) for model, label in listing(catalogs, alias_provider="")],
        "aliases": {} if own is None else {alias: _behind(alias, own) for alias in sorted(ALIASES)},
    }


def _described(model: str, catalog: Catalog) -> dict[str, Any]:
    limits = catalog.limits_of(model)
    return {
        "id": model,
        "provider": catalog.label,
        "service": catalog.service,
        "context_window": limits.context,
        "max_output_tokens": limits.output,
    }


def _behind(alias: str, catalog: Catalog) -> dict[str, str]:
    return {"provider": catalog.label, "model": catalog.resolved(alias)}


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--full", action="store_true", help="do not shorten long lists")
    form.add_argument("--json", action="store_true", help="all of them with their limits, and the aliases, as JSON")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    config = ConfigFile(context).config
    if arguments.json:
        print(json.dumps(model_table(context.providers, config), indent=2))
    else:
        shown = None if arguments.full else SHORT
        print("\n".join(model_lines(context.providers, config, shown, program=context.program)))
    return 0


MODELS = Command("models", "list the models of every provider", _run, _arguments)
