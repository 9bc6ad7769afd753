"""`auth login|status|logout`: the account of a provider, or what there is of all."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from proxy.cli.account import account_of, cures, sign_ins
from proxy.cli.command import Command, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.line_input import LineInput
from proxy.config import ConfigError
from proxy.providers.entry import account_titles, named

if TYPE_CHECKING:
    from proxy.providers.contract import Account


def _arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("action", choices=("login", "status", "logout"))
    parser.add_argument("label", nargs="?", help=f"{account_titles(context.providers)}; all for status without one")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--device", action="store_true", help="sign in with a code on another device")
    how.add_argument("--paste", action="store_true", help="sign in with a browser elsewhere: paste where it ended")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    if arguments.label is None:
        if arguments.action == "status":
            return _all(context)
        which = account_titles(context.providers)
        raise ConfigError(f"of which provider? {context.program} auth {arguments.action} LABEL, one of {which}")
    account = account_of(arguments.label, context)
    if arguments.action == "status":
        return 0 if account.status(say=say) else 1
    if arguments.action == "logout":
        await account.logout(say=say)
    elif arguments.paste:
        await _paste(account, arguments.label, context)
    else:
        await account.login(device=arguments.device, say=say)
    return 0


async def _paste(account: Account, name: str, context: Context) -> None:
    from proxy.providers.contract import Pasting

    if not isinstance(account, Pasting):
        entry = named(name, context.providers)
        how = entry.sign_in.replace("`", "") if entry is not None else ""
        raise ConfigError(f"nothing can be pasted for {name} (--paste is unsupported); it signs in otherwise: {how}")
    with LineInput() as lines:
        await account.login_pasted(read=lines.read, say=say)


def _all(context: Context) -> int:
    """Says what is known of each account; 1 when none can be used."""
    found = sign_ins(context, ConfigFile(context, new=True))
    for one in found:
        say(f"{one.entry.title}: {one.state}")
        for line in one.lines if one.usable else one.lines[1:]:
            say(f"  {line}")
    if any(one.usable for one in found):
        return 0
    say("\n".join(cures(found, context.program)))
    return 1


AUTH = Command("auth", "sign in and out: auth login p1; auth status for all", _run, _arguments, failure=2)
