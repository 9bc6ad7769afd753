"""What is measured behind a block of requests, and when it counts as growth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

GROWTH = 0.05
#: Growth below this is none, whatever its share: a conversation more whose socket or run waits, an arena of memory.
SLACK: Mapping[str, float] = {"tasks": 5, "sockets": 5, "descriptors": 5, "objects": 1_000, "memory MB": 3}
#: Of the blocks, how many come first and are not judged: they fill tables, pools and the allocator.
WARM_UP = 0.2


class Measured(NamedTuple):
    """Behind one block. `types`: how many live objects there are of each type."""

    values: Mapping[str, float]
    types: Counter[str]


class Growth(NamedTuple):
    """The least value of the earlier half of the judged blocks, and of the later one."""

    name: str
    early: float
    late: float

    @property
    def share(self) -> float:
        return (self.late - self.early) / max(self.early, 1)

    @property
    def counts(self) -> bool:
        return self.late - self.early > max(SLACK[self.name], self.early * GROWTH)

    def __str__(self) -> str:
        return f"{self.name} {self.early:.0f} -> {self.late:.0f} ({self.share:+.1%})"


def judged(blocks: Sequence[Measured]) -> tuple[Sequence[Measured], Sequence[Measured]]:
    """The two halves that are compared; empty when there are too few blocks to judge."""
    rest = blocks[max(1, round(len(blocks) * WARM_UP)) :]
    half = len(rest) // 2
    return rest[:half], rest[half:]


def growth(blocks: Sequence[Measured]) -> list[Growth]:
    """Of each value; nothing when there are too few blocks.

    >>> [str(one) for one in growth([Measured({"tasks": 9 + more}, Counter()) for more in range(5)])]
    ['tasks 10 -> 12 (+20.0%)']
    """
    early, late = judged(blocks)
    if not early:
        return []
    return [
        Growth(name, *(min(block.values[name] for block in half) for half in (early, late)))
        for name in blocks[0].values
    ]


def growing_types(blocks: Sequence[Measured], most: int = 8) -> list[str]:
    """The types of which the later half has more objects than the earlier, the most first."""
    early, late = judged(blocks)
    if not early:
        return []
    more = Counter(
        {
            name: min(block.types[name] for block in late) - min(block.types[name] for block in early)
            for name in late[-1].types
        }
    )
    return [f"{name} +{count}" for name, count in more.most_common(most) if count > 0]
