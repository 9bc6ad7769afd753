"""SampledWindows of the windows of allowances: when each changed, and to what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proxy.observe.monitor.snapshot import AllowanceRow

#: Windows whose newest sample is remembered.
MAX_WINDOWS = 1_000


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
        self._newest: dict[tuple[str, str, str], tuple[float, int | None]] = {}

    def changed(self, rows: Iterable[AllowanceRow]) -> Iterator[Sample]:
        """The samples of windows whose use or end is another one than before. Ends that differ by less than a minute
        are one: services compute them from the time that is left."""
        for row in rows:
            if row.reset:  # its use is unknown
                continue
            place = row.provider, row.window, row.limit
            resets = None if row.resets_at is None else round(row.resets_at / 60)
            if self._newest.get(place) == (row.used, resets):
                continue
            if len(self._newest) >= MAX_WINDOWS:
                self._newest.clear()
            self._newest[place] = row.used, resets
            ends = None if row.resets_at is None else round(1000 * row.resets_at)
            yield Sample(*place, round(1000 * row.as_of), row.used, ends)
