"""The entry of P3, known before its use."""

from __future__ import annotations

from proxy.config import Config
from proxy.later import Later
from proxy.providers.entry import Entry
from proxy.providers.p3_grok.catalog import CATALOG, catalog_of
from proxy.providers.p3_grok.settings import GrokSettings


def _omits_pictures(config: Config) -> bool:
    return config.section(GrokSettings).tool_image == "omit"


GROK = Entry(
    CATALOG,
    product="Grok",
    state="served: tools, thinking, web and X search; images by a setting",
    build=Later("proxy.providers.p3_grok.provider:GrokProvider"),
    settings=GrokSettings,
    account=Later("proxy.providers.p3_grok.account.signin:GrokAccount"),
    sign_in="with a browser, here or (`--paste`) elsewhere, or with a code on another device: `--device`",
    adding=catalog_of,
    searches=2,
    blind=_omits_pictures,
    examples={"responses": "grok-4.6"},
)
