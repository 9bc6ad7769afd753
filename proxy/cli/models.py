"""`models`: one line a provider."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from proxy.cli.command import APP, Command, Context
from proxy.providers.entry import Entry

#: Ids of a provider that are shown, unless all are asked for.
SHORT = 20


def model_lines(providers: Iterable[Entry], shown: int | None = SHORT) -> list[str]:
    """The models of the providers that are served. The shortened form only counts those with a prefix."""
    lines = []
    for entry in providers:
        if entry.build is None:
            continue
        models, prefixed = sorted(entry.catalog.models), entry.catalog.prefixed
        ids = [*models, *prefixed] if shown is None else models[:shown]
        hidden = len(models) + len(prefixed) - len(ids)
        more = f", … ({hidden} more: {APP} models --full)" if hidden else ""
        lines.append(f"{entry.title}: {', '.join(ids)}{more}")
    return lines


def _arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("--full", action="store_true", help="do not shorten long lists")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    print("\n".join(model_lines(context.providers, None if arguments.full else SHORT)))
    return 0


MODELS = Command("models", "list the models of every provider", _run, _arguments)
