"""What the program knows of P1 before it uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.providers.entry import Entry
from proxy.providers.p1_codex.catalog import CATALOG, catalog_of
from proxy.providers.p1_codex.settings import CodexSettings

if TYPE_CHECKING:
    from proxy.providers.contract import Account, AccountContext, Provider, Services


def _provider(services: Services) -> Provider:
    from proxy.providers.p1_codex.provider import CodexProvider

    return CodexProvider(services)


def _account(context: AccountContext) -> Account:
    from proxy.providers.p1_codex.account.commands import CodexAccount

    return CodexAccount(context)


CODEX = Entry(
    CATALOG,
    product="ChatGPT (Codex)",
    state="served: tools, images, thinking, web search, structured output; Responses pass through natively",
    build=_provider,
    settings=CodexSettings,
    account=_account,
    sign_in="with a browser, here or (`--paste`) elsewhere, or with a code on another device: `--device`",
    adding=catalog_of,
    examples={"responses": "gpt-5.5"},
)
