"""Samples of the windows of allowances: when each changed, and to what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proxy.observe.monitor.snapshot import AllowanceRow

#: Windows whose newest sample is remembered.
MAX_WINDOWS = 1_000
#: Ends that differ by less are one: services compute them from the time that is left.
_SAME_END_S = 60.0


class Sample(NamedTuple):
    """A window at one moment. `at`, `resets`: milliseconds since 1970; `used`: per cent."""

    account: str
    window: str
    limit: str
    at: int
    used: float
    resets: int | None


class SampledWindows:
    """Tells which reports of windows are news."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str, str], tuple[float, float | None]] = {}

    def changed(self, rows: Iterable[AllowanceRow]) -> Iterator[Sample]:
        """The samples of windows whose use or end is another one than that of the sample before."""
        for row in rows:
            place, ends = (row.provider, row.window, row.limit), row.resets_at
            if row.reset or not all(map(math.isfinite, (row.used, row.as_of, ends or 0.0))):  # its use is unknown
                continue
            used, before = self._newest.get(place, (None, None))
            if used == row.used and (ends == before or (ends and before and abs(ends - before) < _SAME_END_S)):
                continue
            if len(self._newest) >= MAX_WINDOWS:
                self._newest.clear()
            self._newest[place] = row.used, ends
            yield Sample(*place, round(1000 * row.as_of), row.used, None if ends is None else round(1000 * ends))
