"""The entry of P1, known before its use."""

from __future__ import annotations

from proxy.later import Later
from proxy.providers.entry import Entry
from proxy.providers.p1_codex.catalog import CATALOG, catalog_of
from proxy.providers.p1_codex.settings import CodexSettings

CODEX = Entry(
    CATALOG,
    product="ChatGPT (Codex)",
    state="served: tools, images, thinking, web search, structured output; Responses pass through natively",
    build=Later("proxy.providers.p1_codex.provider:CodexProvider"),
    settings=CodexSettings,
    account=Later("proxy.providers.p1_codex.account.signin:CodexAccount"),
    sign_in="with a browser, here or (`--paste`) elsewhere, or with a code on another device: `--device`",
    adding=catalog_of,
    searches=1,
    examples={"responses": "gpt-5.5"},
)
