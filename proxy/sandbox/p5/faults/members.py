"""Faults of what a payload holds: several members, unknown ones, and records that are for display only."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.sandbox.p5.answer import AgentAnswer
from proxy.sandbox.p5.events import Event
from proxy.sandbox.p5.faults.places import AgentFault, insert, is_event, kind_of
from proxy.sandbox.p5.ledger import EXEC
from proxy.sandbox.play.actions import Action

#: What display records say. None of it belongs into an answer.
SHOWN = "shown-not-said"


def _text_and_end(answer: AgentAnswer) -> Iterator[Action]:
    """The last text and the end of the turn are members of one update."""
    for one in answer.stream():
        if isinstance(one, dict) and is_event(one, "turn_ended"):
            yield {"type": "updates", "events": [{"type": "text_delta", "text": " Together."}, one]}
        else:
            yield one


def _with_exec(answer: AgentAnswer, beside: Event, *, first: bool) -> Iterator[Action]:
    """An exec that cannot be run, with something beside it in one payload."""
    number = answer.number(EXEC)
    exec_ = {"type": "exec", "kind": "grep", "id": number, "exec_id": answer.ids.new("exec"), "pattern": "x"}
    events = [beside, exec_] if first else [exec_, beside]
    for one in answer.stream():
        yield one
        if kind_of(one) == "created":
            yield {"type": "several", "events": events}
            yield answer.settled(EXEC, number)


_BEAT = {"type": "heartbeat"}

_BESIDE: dict[str, tuple[Event, bool]] = {
    "exec_heartbeat": (_BEAT, False),
    "text_exec": ({"type": "text_delta", "text": "First. "}, True),
    "exec_text": ({"type": "text_delta", "text": "Then. "}, False),
}


def _several(answer: AgentAnswer, which: str = "text_end") -> Iterator[Action]:
    """`which`: text_end, or exec_heartbeat, text_exec, exec_text, in that order in one payload."""
    if which == "text_end":
        return _text_and_end(answer)
    beside, first = _BESIDE[which]
    return _with_exec(answer, beside, first=first)


#: Records for display, hints and unknown members: nothing of them is an answer.
_DISPLAYED: tuple[Event, ...] = (
    {"type": "user_message_appended", "text": SHOWN, "message_id": "m"},
    {"type": "tool_call_started", "call_id": SHOWN, "command": SHOWN, "model_call_id": SHOWN},
    {"type": "partial_tool_call", "call_id": SHOWN, "text": SHOWN},
    {"type": "tool_call_delta", "call_id": SHOWN, "text": SHOWN},
    {"type": "shell_output_delta", "text": SHOWN},
    {"type": "tool_call_completed", "call_id": SHOWN, "command": SHOWN, "model_call_id": SHOWN},
    {"type": "summary_started"},
    {"type": "summary", "text": SHOWN},
    {"type": "summary_completed"},
    {"type": "prompt_suggestion", "text": SHOWN},
)

_STRANGE: tuple[Event, ...] = (
    {"type": "strange_update", "text": SHOWN},
    {"type": "strange_message", "text": SHOWN},
    {"type": "payload", "hex": ""},
)


def _between(answer: AgentAnswer, *events: Event) -> Iterator[Action]:
    """One of these before each delta of text, in turn."""
    count = 0
    for one in answer.stream():
        if kind_of(one) == "text":
            yield dict(events[count % len(events)])
            count += 1
        yield one


def _thoughts_between(answer: AgentAnswer) -> Iterator[Action]:
    """The model thinks again after its first words."""
    return insert(answer, "text", {"type": "thinking_delta", "text": "Wait."}, {"type": "thinking_completed"})


MEMBER_FAULTS: dict[str, AgentFault] = {
    "several_members": _several,
    "display_records": lambda answer: _between(answer, *_DISPLAYED),
    "unknown_events": lambda answer: _between(answer, *_STRANGE),
    "keepalives": lambda answer: _between(answer, _BEAT),
    "thoughts_between": _thoughts_between,
    "empty_deltas": lambda answer: _between(
        answer, {"type": "text_delta", "text": ""}, {"type": "thinking_delta", "text": ""}
    ),
}
