"""What scenarios are made of: a list to stand in, and an expectation that says what was seen."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

Client = TypeVar("Client")

#: Called with the client and a folder for the proxy. Raises AssertionError when it fails.
Scenario = Callable[[Client, Path], Awaitable[None]]


class Scenarios(list[Scenario[Client]], Generic[Client]):
    """The scenarios of one client, in the order in which they are written."""

    def add(self, scenario: Scenario[Client]) -> Scenario[Client]:
        self.append(scenario)
        return scenario


def without(scenarios: Sequence[Scenario[Client]], some: Sequence[Scenario[Client]]) -> Sequence[Scenario[Client]]:
    return tuple(one for one in scenarios if one not in some)


def named(scenario: Scenario[Client], words: str) -> Scenario[Client]:
    """The scenario, under a name made of the words."""
    scenario.__name__ = re.sub(r"\W+", "_", words)
    return scenario


#: How much of what was seen is shown, from its beginning and from its end: where a program failed stands in the last
#: line of what it said.
SHOWN_FIRST, SHOWN_LAST = 600, 1200


def expect(condition: object, what: str, seen: object = "") -> None:
    if not condition:
        told = str(seen)
        if len(told) > SHOWN_FIRST + SHOWN_LAST:
            told = f"{told[:SHOWN_FIRST]} … {told[-SHOWN_LAST:]}"
        raise AssertionError(f"{what}; seen: {told}")
