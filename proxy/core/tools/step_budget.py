"""How much work a walk over a structure of somebody else's may do.

References that name each other twice double the work with every step, and a value of an upstream may be as long as the
schema of a caller is wide: the size of what was sent says nothing about the size of the walk.
"""

from __future__ import annotations

#: Members looked at in one schema, or in an answer and its schema. The largest schema that strict mode takes has 5,000
#: properties, a large one of a tool some hundred; so many take about 20 ms.
MAX_STEPS = 20_000


class TooManySteps(Exception):
    """The walk is given up: what was walked over passes as it is."""


class Steps:
    """What is left of the work.

    >>> steps = Steps(2)
    >>> steps.take(2)
    >>> steps.take()
    Traceback (most recent call last):
        ...
    proxy.core.tools.step_budget.TooManySteps
    """

    __slots__ = ("_left",)

    def __init__(self, limit: int = MAX_STEPS) -> None:
        self._left = limit

    def take(self, count: int = 1) -> None:
        """Before `count` members are looked at. Raises TooManySteps."""
        self._left -= count
        if self._left < 0:
            raise TooManySteps
