"""What can go wrong in a run, by name. Each fault turns the normal answer into the actions to play instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from proxy.sandbox.p5.answer import AgentAnswer
from proxy.sandbox.play.actions import Action, Cut, Pause

AgentFault = Callable[..., Iterable[Action]]


def _pause_first(answer: AgentAnswer | None, seconds: float = 5.0) -> Iterator[Action]:
    return chain([Pause(seconds)], () if answer is None else answer.stream())


def _cut_first(answer: AgentAnswer | None, reset: bool = False) -> list[Action]:  # noqa: ARG001
    return [Cut(reset)]


#: Those that come before the head of the stream, when nothing was asked for yet: then there is no answer.
OPENING_FAULTS: dict[str, AgentFault] = {
    "silence_before_head": _pause_first,
    "cut_before_head": _cut_first,
}

AGENT_FAULTS: dict[str, AgentFault] = {}
