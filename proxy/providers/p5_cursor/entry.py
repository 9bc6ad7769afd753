"""What the program knows of P5 before it uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.providers.entry import Entry
from proxy.providers.p5_cursor.catalog import CATALOG, catalog_of
from proxy.providers.p5_cursor.settings import CursorSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proxy.config import Config
    from proxy.providers.contract import Account, AccountContext, Provider, Services


def _provider(services: Services) -> Provider:
    from proxy.providers.p5_cursor.provider import CursorProvider

    return CursorProvider(services)


def _account(context: AccountContext) -> Account:
    from proxy.providers.p5_cursor.account.commands import CursorAccount

    return CursorAccount(context)


def _own(_root: Path) -> Callable[[Config], Config]:
    from proxy.providers.accounts.named import OwnSettings

    return OwnSettings(CursorSettings, lambda: {"auth_token": None})


CURSOR = Entry(
    CATALOG,
    product="Cursor Agent",
    state="served: thinking, images, and the client's Read, Write and Bash",
    build=_provider,
    settings=CursorSettings,
    account=_account,
    sign_in="with a browser, on this machine or any other",
    adding=catalog_of,
    own=_own,
    examples={"agent": "cursor:gpt-5.5"},
)
