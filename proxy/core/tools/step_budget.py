"""Limits the work of a walk over a foreign structure.

References that name each other twice double the work with every step, and an upstream's value may be as long as a
caller's schema is wide: the work does not follow from the size of what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from proxy.core.long_json import Remembered

#: Members that are visited in one schema, or in an answer and its schema, at about 20 ms. The largest schema that
#: strict mode accepts has 5,000 properties, a large one of a tool some hundred.
MAX_STEPS = 20_000
#: Steps besides visiting members, for one tool: references expanded, branches folded, patterns compiled.
MAX_EXTRA = 8_000
#: Such steps for all tools of a request. While any are left a tool may take `MAX_EXTRA`, so at most 20 ms are spent.
REQUEST_EXTRA = 12_000

T = TypeVar("T")


class TooManySteps(Exception):
    """The walk is given up: its subject is passed on unchanged."""


class Steps:
    """The remaining work on one schema.

    >>> steps = Steps(2)
    >>> steps.take(2)
    >>> steps.take()
    Traceback (most recent call last):
        ...
    proxy.core.tools.step_budget.TooManySteps

    left   members that may still be visited
    extra  further steps that `allows` may still grant
    short  whether a step was refused
    """

    __slots__ = ("extra", "left", "short")

    def __init__(self, limit: int = MAX_STEPS, extra: int = MAX_EXTRA) -> None:
        self.left = limit
        self.extra = extra
        self.short = False

    def take(self, count: int = 1) -> None:
        """Takes the steps to visit `count` members. Raises TooManySteps."""
        self.left -= count
        if self.left < 0:
            raise TooManySteps

    def allows(self, count: int) -> bool:
        """Takes `count` further steps, if that many are left. After one refusal all are refused, and the walk goes on
        without them."""
        if self.short or count > self.extra:
            self.short = True
            return False
        self.extra -= count
        return True


class ToolSteps:
    """The remaining work on the tools of one request.

    simplified  gets the names of tools that are not sent in full
    """

    __slots__ = ("left", "simplified")

    def __init__(self, simplified: list[str] | None = None, left: int = REQUEST_EXTRA) -> None:
        self.left = left
        self.simplified = [] if simplified is None else simplified


class ToolWalk(Generic[T]):
    """Applies `work` to each tool within the steps of its request, and remembers the result as `Remembered` does.

    A remembered tool counts its first cost, so that a request has the same bytes each turn.
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
    """The result, the further steps that it cost, and whether those were too few."""
    steps = Steps(extra=extra)
    made = work(tool, steps)
    return made, extra if steps.short else extra - steps.extra, steps.short
