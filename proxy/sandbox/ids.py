"""Ids of answers, items and requests."""

from __future__ import annotations

import itertools
import secrets


class Ids:
    """Ids that look like a vendor's and never repeat, also after a restart."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(6)
        self._numbers = itertools.count(1)

    def new(self, prefix: str) -> str:
        return f"{prefix}_{self._run}{next(self._numbers):012x}"
