"""`auth login|status|logout`: the account of a provider."""

from __future__ import annotations

import argparse

from proxy.cli.account import account_of
from proxy.cli.command import Command, Context, say
from proxy.providers.entry import account_titles


def _arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("action", choices=("login", "status", "logout"))
    parser.add_argument("label", help=account_titles(context.providers))
    parser.add_argument("--device", action="store_true", help="sign in with a code on another device")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    account = account_of(arguments.label, context)
    if arguments.action == "status":
        return 0 if account.status(say=say) else 1
    if arguments.action == "logout":
        await account.logout(say=say)
    else:
        await account.login(device=arguments.device, say=say)
    return 0


AUTH = Command("auth", "sign in and out: auth login p1", _run, _arguments, failure=2)
