"""Entries of the providers that are not served yet. Each moves into its provider's folder when that lands."""

from __future__ import annotations

from proxy.core.routing import Catalog
from proxy.providers.entry import Entry

CURSOR = Entry(
    Catalog(
        "p5",
        "cursor",
        (
            *("cursor", "cursor-agent", "cursor-plan", "cursor-ask"),
            *("cursor-composer", "cursor-composer-fast", "composer-2.5", "composer-2.5-fast"),
        ),
        prefixes=("cursor:", "cursor-agent:", "cursor-plan:", "cursor-ask:"),
    ),
    "Cursor Agent",
)
