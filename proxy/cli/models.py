"""`models`: a line for each provider, or all as JSON or for Codex; what the services offered last, for all commands."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from proxy.cli.command import APP, Context
from proxy.cli.config_file import ConfigFile, proxies_of
from proxy.cli.paths import config_root, state_root
from proxy.config import Config
from proxy.core.allowances.accounts import DEFAULT, account_key
from proxy.core.routing import ALIASES, Catalog, listing
from proxy.providers.accounts.model_lists import ModelLists
from proxy.providers.accounts.named import names_in
from proxy.providers.entry import Entry

#: Ids of a provider that are shown by default.
SHORT = 20
#: Mark of a name that the service does not list for any account.
LACKING = "(not in your plan)"


def offering(context: Context) -> tuple[Entry, ...]:
    """The providers with the models that their services offered last."""
    lists = kept_lists(context)
    return tuple(entry.offering(lists.of_label(entry.label), context.providers) for entry in context.providers)


def kept_lists(context: Context) -> ModelLists:
    """The lists in the state folder, of the accounts that there are."""
    lists, root = ModelLists(folder=state_root(context.environment)), config_root(context.environment)
    lists.read()
    for entry in context.providers:
        lists.only(entry.label, [account_key(entry.label, name) for name in (DEFAULT, *names_in(root, entry.label))])
    return lists


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
        models, prefixed = sorted(catalog.shown) + sorted(catalog.lacking), catalog.prefixed
        marked = [f"{model} {LACKING}" if model in catalog.lacking else model for model in models]
        ids = [*marked, *prefixed] if shown is None else marked[:shown]
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
        "models": [
            *(_described(model, by_label[label]) for model, label in listing(catalogs, alias_provider="")),
            *(_described(model, catalog) for catalog in catalogs for model in sorted(catalog.lacking)),
        ],
        "aliases": {} if own is None else {alias: _behind(alias, own) for alias in sorted(ALIASES)},
    }


def _described(model: str, catalog: Catalog) -> dict[str, Any]:
    facts = catalog.facts_of(model)
    return {
        "id": model,
        "provider": catalog.label,
        "service": catalog.service,
        "context_window": facts.context,
        "max_output_tokens": facts.output,
        "efforts": facts.efforts,
        "sees": facts.sees,
        "in_plan": model not in catalog.lacking,
    }


def _behind(alias: str, catalog: Catalog) -> dict[str, str]:
    return {"provider": catalog.label, "model": catalog.resolved(alias)}


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--full", action="store_true", help="do not shorten long lists")
    form.add_argument("--json", action="store_true", help="all of them with their limits, and the aliases, as JSON")
    form.add_argument("--codex", action="store_true", help="those you are signed in to, as Codex' model_catalog_json")
    parser.add_argument("--refresh", action="store_true", help="ask the services first what they offer")


async def run(arguments: argparse.Namespace, context: Context) -> int:
    file = ConfigFile(context)
    failed = await _refresh(file, context) if arguments.refresh else {}
    for key, reason in failed.items():
        print(reason if reason.startswith(key) else f"{key}: {reason}", file=sys.stderr)
    providers = offering(context)
    if arguments.json:
        print(json.dumps(model_table(providers, file.config), indent=2))
    elif arguments.codex:
        print(_for_codex(providers, file, context), end="")
    else:
        shown = None if arguments.full else SHORT
        print("\n".join(model_lines(providers, file.config, shown, program=context.program)))
    return 1 if failed else 0


def _for_codex(providers: Iterable[Entry], file: ConfigFile, context: Context) -> str:
    """The catalogue for the Codex that is installed, if one is."""
    from proxy.cli.account import sign_ins, usable_labels
    from proxy.cli.launch.codex_models import catalog_text
    from proxy.cli.launch.usable_models import usable_models

    models = usable_models(providers, file.config, usable_labels(sign_ins(context, file)), any_tools=True)
    return catalog_text(context.environment, models)


async def _refresh(file: ConfigFile, context: Context) -> dict[str, str]:
    """Asks all services with an account, by an application without a listener; returns why some failed, by account."""
    from aiohttp import web

    from proxy.server.app import create_app
    from proxy.server.request.state import STATE

    app = create_app(
        file.current,
        config_dir=file.root,
        proxies=proxies_of(context.environment),
        entries=context.providers,
        state_dir=state_root(context.environment),
        command=context.program,
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        state = app[STATE]
        for label in state.providers:
            state.accounts.of(label)
        return await state.catalogs.lists.refreshed(state.accounts.watched())
    finally:
        await runner.cleanup()
