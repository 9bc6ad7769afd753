"""The back-off between upgrades, as a value: each outcome of an upgrade makes a new one. Pure: the times are arguments.

The backend's edge answers bursts of upgrades with an empty 403 although the token is good; a fixed delay would hold the
whole process to one request a second. So there is no delay until an upgrade is refused, and it shrinks again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

#: The delay after the first refusal; anything below it counts as none.
FIRST_S = 1.0
#: However often upgrades are refused.
CAP_S = 8.0
#: So many successes in a row halve the delay.
SUCCESSES = 20


@dataclass(frozen=True, slots=True)
class UpgradeBackoff:
    """Seconds between the starts of two upgrades.

    floor      never less than this, as configured
    delay      what refusals made of it
    successes  in a row since the delay last changed
    since      when the delay last grew
    """

    floor: float = 0.0
    delay: float = 0.0
    successes: int = 0
    since: float = -math.inf

    @property
    def seconds(self) -> float:
        return max(self.floor, self.delay)

    def refused(self, started: float, now: float) -> UpgradeBackoff:
        """After a 403 of the backend. Upgrades that had started before the delay grew are one burst with the refusal
        that made it grow: they tell nothing of the delay.

        >>> UpgradeBackoff().refused(0, 1).refused(0, 1).refused(2, 3).seconds
        2.0
        """
        if started <= self.since:
            return self
        delay = min(CAP_S, 2 * self.seconds) if self.seconds else FIRST_S
        return UpgradeBackoff(self.floor, delay, since=now)

    def succeeded(self) -> UpgradeBackoff:
        """After an upgrade that worked. Only a delay above the floor is counted down."""
        if self.seconds <= self.floor:
            return self
        if self.successes + 1 < SUCCESSES:
            return replace(self, successes=self.successes + 1)
        half = self.seconds / 2
        return replace(self, delay=half if half >= FIRST_S else 0.0, successes=0)
