"""The entry of P5, known before its use."""

from __future__ import annotations

from proxy.later import Later
from proxy.providers.entry import Entry, OwnSettings
from proxy.providers.p5_cursor.catalog import CATALOG, catalog_of
from proxy.providers.p5_cursor.settings import CursorSettings

CURSOR = Entry(
    CATALOG,
    product="Cursor Agent",
    state="served: thinking, images, and the client's tools for files and commands",
    build=Later("proxy.providers.p5_cursor.provider:CursorProvider"),
    settings=CursorSettings,
    account=Later("proxy.providers.p5_cursor.account.signin:CursorAccount"),
    sign_in="with a browser, on this machine or any other",
    adding=catalog_of,
    own=lambda _root: OwnSettings(CursorSettings, lambda: {"auth_token": None}),
    examples={"agent": "cursor:gpt-5.5"},
    bridges=True,
)
