"""How far apart sockets are opened, as a value that answers give a new one of. No clock, no waiting.

The backend's edge answers bursts of upgrades with an empty 403 although the token is good; a fixed distance would hold
the whole process to one request a second. So the distance is nothing until an upgrade is refused, and shrinks again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: The distance after the first refusal; anything below it is as good as none.
FIRST_S = 1.0
#: However often upgrades are refused.
CAP_S = 8.0
#: So many successes in a row halve the distance.
SUCCESSES = 20


@dataclass(frozen=True, slots=True)
class Spacing:
    """Seconds between the starts of two upgrades.

    floor  never less than this, as configured
    """

    floor: float = 0.0
    stretched: float = 0.0
    successes: int = 0

    @property
    def seconds(self) -> float:
        return max(self.floor, self.stretched)

    def refused(self) -> Spacing:
        """After a 403 of the backend.

        >>> Spacing().refused().refused().seconds
        2.0
        """
        return Spacing(self.floor, min(CAP_S, 2 * self.seconds) if self.seconds else FIRST_S)

    def succeeded(self) -> Spacing:
        """After an upgrade that worked. Only a stretched distance is counted down."""
        if self.seconds <= self.floor:
            return self
        if self.successes + 1 < SUCCESSES:
            return replace(self, successes=self.successes + 1)
        half = self.seconds / 2
        return Spacing(self.floor, half if half >= FIRST_S else 0.0)
