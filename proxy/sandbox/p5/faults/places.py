"""Places in an answer that is still being made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from proxy.sandbox.model.reply import Call, Tool, reply
from proxy.sandbox.p5.answer import AgentAnswer
from proxy.sandbox.play.actions import Action
from proxy.sandbox.wires.answer import SOME_THOUGHT

AgentFault = Callable[..., Iterable[Action]]

#: What a fault has called when it needs a call.
SOME_CALL = Call(Tool("Bash"), {"command": "echo 0"})

_KINDS = {"step_started": "created", "thinking_delta": "thinking", "text_delta": "text"}


def kind_of(action: Action) -> str | None:
    """Which of the places an action is."""
    if not isinstance(action, dict):
        return None
    if action["type"] == "exec":
        return None if action.get("kind") == "context" else "call"
    return _KINDS.get(action["type"])


def is_event(action: Action, *types: str) -> bool:
    return isinstance(action, dict) and action["type"] in types


def prepared(answer: AgentAnswer, after: str) -> AgentAnswer:
    """The answer with a call or a thought when something is to happen there."""
    if after == "thinking":
        answer.first.insert(0, SOME_THOUGHT)
    elif after == "call" and not any(isinstance(part, Call) for part in reply(answer.ask)):
        answer.first.append(SOME_CALL)
    return answer


def insert(answer: AgentAnswer, after: str, *actions: Action) -> Iterator[Action]:
    """The normal answer with these actions inside, at the latest before it ends."""
    left: list[Action] | None = list(actions)
    if after == "nothing" and left is not None:
        yield from left
        left = None
    for one in prepared(answer, after).stream():
        if left is not None and is_event(one, "turn_ended"):
            yield from left
            left = None
        yield one
        if left is not None and kind_of(one) == after:
            yield from left
            left = None


def break_off(answer: AgentAnswer, after: str, *actions: Action) -> Iterator[Action]:
    """The beginning of the normal answer, then these actions and nothing else."""
    if after != "nothing":
        for one in prepared(answer, after).stream():
            if is_event(one, "turn_ended"):
                break
            yield one
            if kind_of(one) == after:
                break
    yield from actions


def without(answer: AgentAnswer, *types: str) -> Iterator[Action]:
    """The normal answer without the events of these types."""
    return (one for one in answer.stream() if not is_event(one, *types))


def edited(answer: AgentAnswer, **members: Any) -> Iterator[Action]:
    """The normal answer, each event with these members as well."""
    return ({**one, **members} if isinstance(one, dict) else one for one in answer.stream())


def at_work(answer: AgentAnswer, *begin: Iterable[Action]) -> Iterator[Action]:
    """The normal answer with these actions before what the model says; they are made when their turn comes."""
    for one in answer.stream():
        yield one
        if kind_of(one) == "created":
            for actions in begin:
                yield from actions
