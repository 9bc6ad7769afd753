"""What the program knows of P4 before it uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.providers.entry import Entry
from proxy.providers.p4_opencode.catalog import CATALOG, catalog_of
from proxy.providers.p4_opencode.settings import OpenCodeSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proxy.config import Config
    from proxy.providers.contract import Account, AccountContext, Provider, Services


def _provider(services: Services) -> Provider:
    from proxy.providers.p4_opencode.provider import OpenCodeProvider

    return OpenCodeProvider(services)


def _account(context: AccountContext) -> Account:
    from proxy.providers.p4_opencode.account.commands import OpenCodeAccount

    return OpenCodeAccount(context)


def _own(root: Path) -> Callable[[Config], Config]:
    from proxy.providers.p4_opencode.account.stored_key import own_key

    return own_key(root)


OPENCODE = Entry(
    CATALOG,
    product="OpenCode Go",
    state="served over chat completions, Messages and Responses, by model",
    build=_provider,
    settings=OpenCodeSettings,
    account=_account,
    sign_in="no sign-in: an API key, `PROXY_P4_API_KEY`",
    adding=catalog_of,
    own=_own,
    key="PROXY_P4_API_KEY",
    examples={"chat": "opencode-go/kimi-k2.6", "messages": "qwen3.8-flash", "responses": "opencode-go/grok-4.6"},
)
