"""The loop that tests run on: what a busy machine takes from this process is no time to it.

A process may get nothing for half a second at any moment, and every limit that a test sets would have to be longer.
Here time is what the loop chose to wait, and a little for each of its turns.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Sequence
from typing import Any

#: What a turn counts at most. Few compute for so long; one that takes longer was mostly interrupted.
TURN_S = 0.005


class _Waits(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    """Counts the seconds that it was asked to wait, and no more: it may be woken long after them."""

    def __init__(self) -> None:
        super().__init__()
        self._before = self._since = time.monotonic()

    def now(self) -> float:
        return self._before + min(time.monotonic() - self._since, TURN_S)

    def select(self, timeout: float | None = None) -> Sequence[tuple[selectors.SelectorKey, Any]]:
        self._before = self.now()
        began = time.monotonic()
        ready: Sequence[tuple[selectors.SelectorKey, Any]] = super().select(timeout)
        self._since = time.monotonic()
        if timeout is None or timeout > 0:
            waited = self._since - began
            self._before += waited if timeout is None else min(waited, timeout)
        return ready


class OwnTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._waits = _Waits()
        super().__init__(self._waits)

    def time(self) -> float:
        return self._waits.now()
