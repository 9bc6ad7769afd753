"""What the program knows of P5 before it uses it."""

from __future__ import annotations

from proxy.providers.entry import Entry
from proxy.providers.p5_cursor.catalog import CATALOG
from proxy.providers.p5_cursor.settings import CursorSettings

CURSOR = Entry(CATALOG, product="Cursor Agent", settings=CursorSettings)
