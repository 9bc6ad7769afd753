"""All providers, one line each. A new one is a folder with an entry, and a line here."""

from __future__ import annotations

from proxy.providers.entry import Entry
from proxy.providers.p1_codex.entry import CODEX
from proxy.providers.p2_kimi.entry import KIMI
from proxy.providers.p3_grok.entry import GROK
from proxy.providers.p4_opencode.entry import OPENCODE
from proxy.providers.p5_cursor.entry import CURSOR

PROVIDERS: tuple[Entry, ...] = (CODEX, KIMI, GROK, OPENCODE, CURSOR)
