"""What was searched beside calls of the client, for its next request: the OpenAI-style routes cannot carry it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: How long a client may work on its calls, in seconds, before what was searched beside them is forgotten.
KEPT_S = 3600.0
#: Maximum number of answers whose searches are kept, and of the bytes of all of them.
MAX_KEPT, MAX_KEPT_BYTES = 256, 16 * 1024 * 1024

Blocks = Sequence[Mapping[str, Any]]


class SearchMemory:
    """The blocks of searches by the name of the caller's key and the id of a call, which nobody can guess. An entry
    expires; a full table drops its oldest."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str | None, str], tuple[float, int, Blocks]] = OrderedDict()
        self._bytes = 0

    def keep(self, caller: str | None, call_id: str, blocks: Blocks, size: int) -> None:
        """Keeps the blocks for a request that has the call. `size`: their bytes."""
        self._drop((caller, call_id))
        self._kept[caller, call_id] = self._clock(), size, blocks
        self._bytes += size
        while self._kept and (len(self._kept) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES):
            self._drop(next(iter(self._kept)))

    def of(self, caller: str | None, call_id: str) -> Blocks:
        """The blocks for a call; [] if there are none."""
        kept = self._kept.get((caller, call_id))
        if kept is not None and self._clock() - kept[0] > KEPT_S:
            self._drop((caller, call_id))
            return []
        return [] if kept is None else kept[2]

    def _drop(self, key: tuple[str | None, str]) -> None:
        dropped = self._kept.pop(key, None)
        self._bytes -= 0 if dropped is None else dropped[1]
