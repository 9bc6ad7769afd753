"""The accounts of one provider or of all, and whether they can be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proxy.cli.command import Context, say
from proxy.cli.config_file import ConfigFile, proxies_of
from proxy.config import ConfigError
from proxy.core.allowances.accounts import DEFAULT, NAME_RULE, account_key, for_account, is_name
from proxy.core.invalid import cut
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.errors import as_typed
from proxy.providers.entry import Entry, account_titles, named
from proxy.settings import is_loopback

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from proxy.providers.accounts.account import Account


@dataclass(frozen=True, slots=True)
class Owned:
    """An account and its provider. `name`: "default" for the unnamed one; `program`: how the user starts this
    program."""

    entry: Entry
    name: str
    account: Account
    program: str

    @property
    def key(self) -> str:
        """Its name in tables: p1, or p1/work."""
        return account_key(self.entry.label, self.name)

    @property
    def title(self) -> str:
        """The name that users see."""
        return f"{self.key} ({self.entry.catalog.service})"

    def say(self, line: str) -> None:
        """Prints a line from this account."""
        say(self.worded(line))

    def worded(self, text: str) -> str:
        """A text from this account, with its commands as this user types them."""
        return as_typed(for_account(text, self.entry.label, self.name), self.program)


def account_of(provider: str, context: Context, name: str = DEFAULT) -> Owned:
    """An account of a provider, by label or service name; it need not exist yet. Raises ConfigError."""
    if not is_name(name):
        raise ConfigError(f"an account cannot be called {cut(name)!r}: {NAME_RULE}")
    entry = named(provider, context.providers)
    account = None if entry is None else _account(entry, context, ConfigFile(context, new=True), name)
    if entry is None or account is None:
        raise ConfigError(f"unknown provider {provider!r}: accounts exist for {account_titles(context.providers)}")
    return Owned(entry, name, account, context.program)


def accounts_of(context: Context, file: ConfigFile) -> list[Owned]:
    """All accounts: for each provider the unnamed one, and the named ones."""
    from proxy.providers.accounts.named import names_in

    made = [
        (entry, name, _account(entry, context, file, name))
        for entry in context.providers
        for name in (DEFAULT, *names_in(file.root, entry.label))
    ]
    return [Owned(entry, name, account, context.program) for entry, name, account in made if account is not None]


def _account(entry: Entry, context: Context, file: ConfigFile, name: str) -> Account | None:
    from proxy.providers.accounts.account import AccountContext
    from proxy.providers.accounts.named import root_of, settings_for

    if entry.account is None:
        return None
    connect = partial(_connect, context.environment)
    if name == DEFAULT:
        return entry.account(AccountContext(file.root, file.config, file.source, connect))
    root = root_of(file.root, entry.label, name)
    config = settings_for(entry, root, lambda: file.config)()
    return entry.account(AccountContext(root, config, file.source, connect, name))


#: A sign-in exists, but cannot be used.
UNUSABLE = "unusable sign-in"
#: No sign-in exists.
NOT_SIGNED_IN = "not signed in"


@dataclass(frozen=True, slots=True)
class SignIn:
    """The state of an account, without a request.

    usable  whether requests can be sent with it
    lines   what `auth status` prints
    """

    entry: Entry
    usable: bool
    lines: tuple[str, ...]
    name: str = DEFAULT

    @property
    def title(self) -> str:
        """The name that users see."""
        return f"{account_key(self.entry.label, self.name)} ({self.entry.catalog.service})"

    @property
    def state(self) -> str:
        """The state in a word or two: an unusable sign-in differs from none."""
        if self.usable:
            return "signed in"
        return NOT_SIGNED_IN if len(self.lines) < 2 else UNUSABLE

    @property
    def why(self) -> str:
        """Why it cannot be used."""
        return ": ".join([self.state, *self.lines[1:2]])


def cures(known: Iterable[SignIn | Owned], program: str) -> list[str]:
    """Commands to type when no account is signed in: a line for each served provider."""
    lines = ["no account is signed in; any one of these is enough:"]
    for entry in (one.entry for one in known if one.entry.build is not None):
        typed = f"export {entry.key}=…" if entry.key else f"{program} auth login {entry.label}"
        lines.append(f"  {typed}   # {entry.product}")
    return lines


def sign_ins(context: Context, file: ConfigFile) -> list[SignIn]:
    """The stored sign-ins of all providers."""
    return [sign_in(owned) for owned in accounts_of(context, file)]


def usable_labels(known: Iterable[SignIn]) -> set[str]:
    """The labels of the providers to which requests can be sent."""
    return {one.entry.label for one in known if one.usable}


def sign_in(owned: Owned) -> SignIn:
    """The stored sign-in of an account."""
    lines: list[str] = []
    usable = owned.account.status(say=lines.append)
    return SignIn(owned.entry, usable, tuple(map(owned.worded, lines)), owned.name)


def _connect(environment: Mapping[str, str], *urls: str) -> AbstractAsyncContextManager[ClientSession]:
    """The client of an account. Commands that need no network work even with wrong proxy settings."""
    from proxy.providers.upstream.client import client_session

    direct = bool(urls) and all(is_loopback(urlsplit(url).hostname or "") for url in urls)
    return client_session(OutboundProxies() if direct else proxies_of(environment))
