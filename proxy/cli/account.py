"""The account that a user names, with what it may use."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proxy.cli.command import Context
from proxy.cli.config_file import ConfigFile
from proxy.cli.outgoing import proxies_of
from proxy.config import ConfigError
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.providers.entry import account_titles, named
from proxy.settings import is_loopback

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from proxy.providers.contract import Account


def account_of(name: str, context: Context) -> Account:
    """The account of a provider, by label or service name. Raises ConfigError."""
    from proxy.providers.contract import AccountContext

    entry = named(name, context.providers)
    if entry is None or entry.account is None:
        raise ConfigError(f"unknown provider {name!r}: accounts exist for {account_titles(context.providers)}")
    file = ConfigFile(context)
    connect = partial(_connect, context.environment)
    return entry.account(AccountContext(file.root, file.config, file.source, connect))


def _connect(environment: Mapping[str, str], *urls: str) -> AbstractAsyncContextManager[ClientSession]:
    """The client of an account: what needs no network works whatever the proxies are set to."""
    from proxy.providers.upstream.client import client_session

    direct = bool(urls) and all(is_loopback(urlsplit(url).hostname or "") for url in urls)
    return client_session(OutboundProxies() if direct else proxies_of(environment))
