"""The entry of P4, known before its use."""

from __future__ import annotations

from proxy.later import Later
from proxy.providers.entry import Entry
from proxy.providers.p4_opencode.catalog import CATALOG, catalog_of
from proxy.providers.p4_opencode.settings import OpenCodeSettings

OPENCODE = Entry(
    CATALOG,
    product="OpenCode Go",
    state="served over chat completions, Messages and Responses, by model",
    build=Later("proxy.providers.p4_opencode.provider:OpenCodeProvider"),
    settings=OpenCodeSettings,
    account=Later("proxy.providers.p4_opencode.account.key:OpenCodeAccount"),
    sign_in="no sign-in: an API key, `PROXY_P4_API_KEY`",
    adding=catalog_of,
    own=Later("proxy.providers.p4_opencode.account.key:own_key"),
    key="PROXY_P4_API_KEY",
    examples={"chat": "opencode-go/kimi-k2.6", "messages": "qwen3.8-flash", "responses": "opencode-go/grok-4.6"},
)
