"""The accounts: of the provider that a user names, or of all, with what they may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.outgoing import proxies_of
from proxy.config import ConfigError
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.providers.entry import Entry, account_titles, named
from proxy.settings import is_loopback

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from proxy.providers.contract import Account


def account_of(name: str, context: Context) -> Account:
    """The account of a provider, by label or service name. Raises ConfigError."""
    entry = named(name, context.providers)
    account = None if entry is None else _account(entry, context, ConfigFile(context, new=True))
    if account is None:
        raise ConfigError(f"unknown provider {name!r}: accounts exist for {account_titles(context.providers)}")
    return account


def accounts_of(context: Context, file: ConfigFile) -> list[tuple[Entry, Account]]:
    """Every provider that has an account, with it."""
    made = [(entry, _account(entry, context, file)) for entry in context.providers]
    return [(entry, account) for entry, account in made if account is not None]


def _account(entry: Entry, context: Context, file: ConfigFile) -> Account | None:
    from proxy.providers.contract import AccountContext

    if entry.account is None:
        return None
    return entry.account(AccountContext(file.root, file.config, file.source, partial(_connect, context.environment)))


#: There is something, which cannot be used.
UNUSABLE = "unusable sign-in"
#: There is nothing.
NOT_SIGNED_IN = "not signed in"


@dataclass(frozen=True, slots=True)
class SignIn:
    """What is known of an account without asking anybody.

    usable  whether requests can be sent with it
    lines   what `auth status` prints
    """

    entry: Entry
    usable: bool
    lines: tuple[str, ...]

    @property
    def state(self) -> str:
        """In a word or two: something that is there and cannot be used is told apart from nothing."""
        if self.usable:
            return "signed in"
        return NOT_SIGNED_IN if len(self.lines) < 2 else UNUSABLE

    @property
    def why(self) -> str:
        """Why it is not usable."""
        return ": ".join([self.state, *self.lines[1:2]])


def cures(known: Iterable[SignIn], program: str) -> list[str]:
    """What to type where nobody is signed in: a line for each provider that is served."""
    lines = ["nobody is signed in; any one of these is enough:"]
    for entry in (one.entry for one in known if one.entry.build is not None):
        typed = f"export {entry.key}=…" if entry.key else f"{program} auth login {entry.label}"
        lines.append(f"  {typed}   # {entry.product}")
    return lines


def sign_ins(context: Context, file: ConfigFile) -> list[SignIn]:
    """The accounts of all providers, as they are stored."""
    return [sign_in(entry, account) for entry, account in accounts_of(context, file)]


def sign_in(entry: Entry, account: Account) -> SignIn:
    """That of an account, as it is stored."""
    lines: list[str] = []
    usable = account.status(say=lines.append)
    return SignIn(entry, usable, tuple(lines))


def _connect(environment: Mapping[str, str], *urls: str) -> AbstractAsyncContextManager[ClientSession]:
    """The client of an account: what needs no network works whatever the proxies are set to."""
    from proxy.providers.upstream.client import client_session

    direct = bool(urls) and all(is_loopback(urlsplit(url).hostname or "") for url in urls)
    return client_session(OutboundProxies() if direct else proxies_of(environment))
