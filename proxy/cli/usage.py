"""`usage`: what is left of an allowance."""

from __future__ import annotations

import argparse

from proxy.cli.account import account_of
from proxy.cli.command import Command, Context, say
from proxy.providers.entry import account_titles


def _arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("label", help=account_titles(context.providers))
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    await account_of(arguments.label, context).usage(as_json=arguments.json, say=say)
    return 0


USAGE = Command("usage", "show what is left of an allowance: usage p1", _run, _arguments)
