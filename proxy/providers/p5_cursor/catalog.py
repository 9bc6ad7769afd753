"""P5's names: eight of our own, and a prefix before any id of the service."""

from __future__ import annotations

from proxy.core.routing import Catalog

LABEL = "p5"

GENERIC = (
    *("cursor", "cursor-agent", "cursor-plan", "cursor-ask"),
    *("cursor-composer", "cursor-composer-fast", "composer-2.5", "composer-2.5-fast"),
)
PREFIXES = ("cursor:", "cursor-agent:", "cursor-plan:", "cursor-ask:")

CATALOG = Catalog(LABEL, "cursor", GENERIC, prefixes=PREFIXES)
