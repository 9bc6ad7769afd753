"""`usage`: what is left of an allowance, or of all."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any

from proxy.cli.account import account_of, accounts_of, sign_in
from proxy.cli.command import Command, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.errors import ProxyError
from proxy.providers.entry import Entry, account_titles

if TYPE_CHECKING:
    from proxy.providers.contract import Account


def _arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("label", nargs="?", help=f"{account_titles(context.providers)}; all without one")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    if arguments.label is None:
        return await _all(context, as_json=arguments.json)
    await account_of(arguments.label, context).usage(as_json=arguments.json, say=say)
    return 0


async def _all(context: Context, *, as_json: bool) -> int:
    """All accounts are asked at one time; 1 when none could tell."""
    accounts = accounts_of(context, ConfigFile(context, new=True))
    told = await asyncio.gather(*(_report(entry, account, as_json=as_json) for entry, account in accounts))
    if as_json:
        say(json.dumps({entry.label: one for (entry, _), (_, one) in zip(accounts, told, strict=True)}))
    else:
        for (entry, _), (_, lines) in zip(accounts, told, strict=True):
            say("\n  ".join([f"{entry.title}:", *lines]))
    return 0 if any(known for known, _ in told) else 1


async def _report(entry: Entry, account: Account, *, as_json: bool) -> tuple[bool, Any]:
    """Whether an account could tell, and what, or why not: lines, or what JSON says."""
    lines: list[str] = []
    try:
        if not (known := sign_in(entry, account)).usable:
            return False, {"error": known.why} if as_json else [known.why]
        await account.usage(as_json=as_json, say=lines.append)
    except (ProxyError, OSError) as error:
        why = error.message if isinstance(error, ProxyError) else str(error)
        return False, {"error": why} if as_json else [why]
    return True, json.loads("\n".join(lines)) if as_json else lines


USAGE = Command("usage", "show what is left of an allowance: usage p1; usage for all", _run, _arguments)
