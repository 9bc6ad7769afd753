"""How much work a walk over a structure of somebody else's may do.

References that name each other twice double the work with every step, and a value of an upstream may be as long as the
schema of a caller is wide: the size of what was sent says nothing about the size of the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from proxy.core.long_json import Remembered

#: Members looked at in one schema, or in an answer and its schema. The largest schema that strict mode takes has 5,000
#: properties, a large one of a tool some hundred; so many take about 20 ms.
MAX_STEPS = 20_000
#: Steps beside the members that were sent, for one tool: references written out, branches folded, patterns compiled.
MAX_EXTRA = 8_000
#: The same for all tools of a request. With this much left a tool may take `MAX_EXTRA`, so 20 ms are spent at most.
REQUEST_EXTRA = 12_000

T = TypeVar("T")


class TooManySteps(Exception):
    """The walk is given up: what was walked over passes as it is."""


class Steps:
    """What is left of the work on one schema.

    >>> steps = Steps(2)
    >>> steps.take(2)
    >>> steps.take()
    Traceback (most recent call last):
        ...
    proxy.core.tools.step_budget.TooManySteps

    left   members that may be looked at as they were sent
    extra  steps that may be taken beside, as `allows` says
    short  whether one was not allowed
    """

    __slots__ = ("extra", "left", "short")

    def __init__(self, limit: int = MAX_STEPS, extra: int = MAX_EXTRA) -> None:
        self.left = limit
        self.extra = extra
        self.short = False

    def take(self, count: int = 1) -> None:
        """Before `count` members are looked at. Raises TooManySteps."""
        self.left -= count
        if self.left < 0:
            raise TooManySteps

    def allows(self, count: int) -> bool:
        """Before `count` steps beside the members. Once one is not allowed none is: the walk goes on without."""
        if self.short or count > self.extra:
            self.short = True
            return False
        self.extra -= count
        return True


class ToolSteps:
    """What is left for the tools of one request.

    simplified  grows by the names of tools that are not sent in full
    """

    __slots__ = ("left", "simplified")

    def __init__(self, simplified: list[str] | None = None, left: int = REQUEST_EXTRA) -> None:
        self.left = left
        self.simplified = [] if simplified is None else simplified


class ToolWalk(Generic[T]):
    """Makes something of each tool within the steps of its request, and remembers it as `Remembered` does.

    A remembered tool counts what it cost at first, so that a request gives the same bytes each turn.
    """

    def __init__(self, work: Callable[[Mapping[str, Any], Steps], T]) -> None:
        self._full = Remembered(partial(_walked, work, MAX_EXTRA))
        self._bare = Remembered(partial(_walked, work, 0))

    def __call__(self, tool: Mapping[str, Any], steps: ToolSteps | None = None) -> T:
        steps = ToolSteps() if steps is None else steps
        made, cost, short = (self._full if steps.left > 0 else self._bare)(tool)
        steps.left -= cost
        if short:
            steps.simplified.append(tool["name"])
        return made


def _walked(work: Callable[[Mapping[str, Any], Steps], T], extra: int, tool: Mapping[str, Any]) -> tuple[T, int, bool]:
    """What was made, the steps that it cost beside its members, and whether those were too few."""
    steps = Steps(extra=extra)
    made = work(tool, steps)
    return made, extra if steps.short else extra - steps.extra, steps.short
