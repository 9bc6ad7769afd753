"""`auth login|status|logout`: the account of a provider, or what there is of all."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from proxy.cli.account import Owned, SignIn, account_of, accounts_of, cures, sign_in, sign_ins
from proxy.cli.command import Command, Context, say
from proxy.cli.config_file import ConfigFile
from proxy.cli.line_input import LineInput
from proxy.config import ConfigError
from proxy.core.allowances.accounts import DEFAULT
from proxy.errors import ProxyError
from proxy.providers.entry import account_titles

if TYPE_CHECKING:
    from proxy.providers.contract import Account


_ACTIONS = "login: sign in; status: who is signed in; logout: delete what is stored"


def _arguments(parser: argparse.ArgumentParser, context: Context) -> None:
    parser.add_argument("action", choices=("login", "status", "logout"), help=_ACTIONS)
    parser.add_argument("label", nargs="?", help=f"{account_titles(context.providers)}; all for status without one")
    parser.add_argument("--as", dest="account", metavar="NAME", help="another account of the provider, by its name")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--device", action="store_true", help="sign in with a code on another device")
    how.add_argument("--paste", action="store_true", help="sign in with a browser elsewhere: paste where it ended")


async def _run(arguments: argparse.Namespace, context: Context) -> int:
    if arguments.label is None:
        if arguments.account is not None:
            raise ConfigError(f"--as needs a provider: {context.program} auth {arguments.action} LABEL --as NAME")
        if arguments.action == "status":
            return _all(context)
        which = account_titles(context.providers)
        raise ConfigError(f"of which provider? {context.program} auth {arguments.action} LABEL, one of {which}")
    owned = account_of(arguments.label, context, arguments.account or DEFAULT)
    if arguments.action == "status":
        return _status(owned, context, alone=arguments.account is not None)
    try:
        if arguments.action == "logout":
            await owned.account.logout(say=owned.say)
        elif arguments.paste:
            await _paste(owned, arguments.label)
        else:
            await owned.account.login(device=arguments.device, say=owned.say)
    except ProxyError as error:
        raise error.replaced(message=owned.told(error.message)) from None
    return 0


async def _paste(owned: Owned, called: str) -> None:
    """`called`: what the user calls the provider."""
    from proxy.providers.contract import Pasting

    account: Account = owned.account
    if not isinstance(account, Pasting):
        how = owned.entry.sign_in.replace("`", "")
        raise ConfigError(f"nothing can be pasted for {called} (--paste is unsupported); it signs in otherwise: {how}")
    with LineInput() as lines:
        await account.login_pasted(read=lines.read, say=owned.say)


def _status(asked: Owned, context: Context, *, alone: bool) -> int:
    """Says what is known of an account, and of those beside it; 1 when none of them can be used."""
    every = [] if alone else accounts_of(context, ConfigFile(context, new=True))
    others = [one for one in every if one.entry is asked.entry and one.name != asked.name]
    if not others:
        return 0 if asked.account.status(say=asked.say) else 1
    return _told([sign_in(one) for one in (asked, *others)])


def _all(context: Context) -> int:
    """Says what is known of each account; 1 when none can be used."""
    found = sign_ins(context, ConfigFile(context, new=True))
    if not _told(found):
        return 0
    say("\n".join(cures(found, context.program)))
    return 1


def _told(found: list[SignIn]) -> int:
    """Says what is known of accounts by their names; 1 when none can be used."""
    for one in found:
        say(f"{one.title}: {one.state}")
        for line in one.lines if one.usable else one.lines[1:]:
            say(f"  {line}")
    return 0 if any(one.usable for one in found) else 1


AUTH = Command("auth", "sign in and out: auth login p1; auth status for all", _run, _arguments, failure=2)
