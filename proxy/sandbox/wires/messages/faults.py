"""Faults of Messages event streams only."""

from __future__ import annotations

from proxy.sandbox.play.actions import Action, Cut, Raw
from proxy.sandbox.play.stream_faults import ARGUMENT_FAULTS, GARBLED, STREAM_FAULTS, Fault, break_off, edited, without
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.messages.answer import MessagesAnswer, block_events


def _whole_arguments(answer: MessagesAnswer) -> list[Action]:
    """Puts the whole input into the start of its block, without deltas."""
    answer.add_calls()

    def fill(event: Event) -> None:
        if event.get("content_block", {}).get("type") == answer.call_type:
            event["content_block"]["input"] = answer.blocks[event["index"]]["input"]

    return edited(without(answer.stream(), lambda event: answer.kind_of(event) == "call"), fill)


def _incomplete(answer: MessagesAnswer, reason: str = "max_tokens", after: str = "text") -> list[Action]:
    """Ends the message early but in good form, with that stop reason."""
    answer.reason = reason
    actions = break_off(answer, after)
    open_block = next((one["index"] for one in reversed(actions) if isinstance(one, dict) and "index" in one), None)
    stop: list[Event] = [] if open_block is None else [{"type": "content_block_stop", "index": open_block}]
    return [*actions, *stop, *answer.end()]


def _usage(answer: MessagesAnswer, where: str = "missing") -> list[Action]:
    """Sends the usage in one event only: "start", "delta", or "missing"."""
    keeps = {"start": "message_start", "delta": "message_delta"}.get(where)

    def strip(event: Event) -> None:
        if event["type"] != keeps:
            event.pop("usage", None)
            event.get("message", {}).pop("usage", None)

    return edited(answer.stream(), strip)


def _strange_block(answer: MessagesAnswer) -> list[Action]:
    """Adds a block of an unknown type after the others."""
    started = {"type": "future_block", "future": "?"}
    strange = block_events(len(answer.blocks), started, {"type": "future_delta", "future": "?"})
    return answer.around([*answer.call_events(), *strange])


MESSAGES_FAULTS: dict[str, Fault] = {
    **STREAM_FAULTS,
    **ARGUMENT_FAULTS,
    "whole_arguments": _whole_arguments,
    "incomplete": _incomplete,
    "usage": _usage,
    "strange_block": _strange_block,
    # everything except the last event
    "cut_after_reason": lambda answer, reset=False: [*answer.stream()[:-1], Cut(reset)],
    "end_after_reason": lambda answer, sentinel=False, garbled=False: [
        *answer.stream()[:-1],
        *([Raw(b"data: [DONE]\n\n")] if sentinel else ()),
        *([GARBLED] if garbled else ()),
    ],
    "error_event": lambda answer, message="Overloaded", kind="overloaded_error", after="nothing", code=None: break_off(
        answer, after, answer.failure(message, kind, code)
    ),
}
