"""The entry of P2, known before its use."""

from __future__ import annotations

from proxy.later import Later
from proxy.providers.entry import Entry
from proxy.providers.p2_kimi.catalog import CATALOG, catalog_of
from proxy.providers.p2_kimi.settings import KimiSettings

KIMI = Entry(
    CATALOG,
    product="Kimi Code",
    state="served: tools, images, thinking",
    build=Later("proxy.providers.p2_kimi.provider:KimiProvider"),
    settings=KimiSettings,
    account=Later("proxy.providers.p2_kimi.account.signin:KimiAccount"),
    sign_in="with a code",
    adding=catalog_of,
    searches=3,
    examples={"chat": "kimi-for-coding"},
)
