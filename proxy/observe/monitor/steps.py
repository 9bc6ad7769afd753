"""Counts over time, in steps of one length."""

from __future__ import annotations

from collections import deque

#: The length of a step, in seconds.
STEP_S = 10.0
#: Steps of the hour that is told of the whole proxy, and of the ten minutes that are told of a session.
HOUR, TREND = 360, 60


def step_at(now: float) -> int:
    """The step that a moment belongs to. `now`: seconds of a clock that only goes forward."""
    return int(now // STEP_S)


class Steps:
    """The newest `size` counts. Moments before the newest one that was told belong to it."""

    __slots__ = ("_counts", "_newest", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts: deque[int] = deque(maxlen=size)
        self._newest = 0

    def add(self, step: int, count: int) -> None:
        if step > self._newest or (self._counts and not self._counts[0]):
            self._go_on(step)
        if self._counts:
            self._counts[-1] += count
        elif count:
            self._counts.append(count)

    def until(self, step: int) -> tuple[int, ...]:
        """Ending with this step; without the zeros at the beginning."""
        self._go_on(step)
        return tuple(self._counts)

    def whole(self, step: int) -> tuple[int, ...]:
        """The same with the zeros: always of one length."""
        told = self.until(step)
        return (0,) * (self._size - len(told)) + told

    def _go_on(self, step: int) -> None:
        counts, missing = self._counts, step - self._newest
        if missing > 0:
            self._newest = step
            if counts:
                counts.extend([0] * min(missing, self._size))
        while counts and not counts[0]:
            counts.popleft()
