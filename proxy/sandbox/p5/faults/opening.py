"""Faults before the head of the stream, when nothing was asked for yet: then there is no answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from proxy.sandbox.p5.answer import AgentAnswer
from proxy.sandbox.p5.faults.places import AgentFault
from proxy.sandbox.play.actions import Action, Cut, Pause


def _pause_first(answer: AgentAnswer | None, seconds: float = 5.0) -> Iterator[Action]:
    return chain([Pause(seconds)], () if answer is None else answer.stream())


def _cut_first(answer: AgentAnswer | None, reset: bool = False) -> list[Action]:  # noqa: ARG001
    return [Cut(reset)]


OPENING_FAULTS: dict[str, AgentFault] = {
    "silence_before_head": _pause_first,
    "cut_before_head": _cut_first,
}
