"""Effort words that nobody knows: they refuse no request, and stand in the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.effort import EFFORTS, effort_asked
from proxy.observe.lifecycle import Log


def note_effort(log: Log, label: str, request: Mapping[str, Any], sent: str | None) -> None:
    """Tells what became of a word that is none of EFFORTS; None is the upstream's own default."""
    asked = effort_asked(request)
    if asked is not None and asked not in EFFORTS:
        log.write("warn", label, "effort_unknown", asked=asked[:40], sent=sent)
