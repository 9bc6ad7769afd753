"""The faults that only a stream of Messages events can have."""

from __future__ import annotations

from itertools import zip_longest

from proxy.core.sse import dump_json
from proxy.sandbox.play.actions import Action
from proxy.sandbox.play.stream_faults import STREAM_FAULTS, Fault, break_off
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.messages.answer import MessagesAnswer


def _interleaved(answer: MessagesAnswer) -> list[Action]:
    """The calls grow at the same time, one event of each in turn."""
    answer.add_calls(2)
    places = range(len(answer.blocks))
    calls = [answer.block_events(place) for place in places if answer.blocks[place]["type"] == "tool_use"]
    others = [answer.block_events(place) for place in places if answer.blocks[place]["type"] != "tool_use"]
    mixed = [event for turn in zip_longest(*calls) for event in turn if event is not None]
    return answer.around([*(event for block in others for event in block), *mixed])


def _no_arguments(answer: MessagesAnswer) -> list[Action]:
    """A call without any delta of its input."""
    return _with_input(answer, "")


def _bad_arguments(answer: MessagesAnswer, arguments: str = "[1]") -> list[Action]:
    """An input that is no JSON object."""
    return _with_input(answer, arguments)


def _with_input(answer: MessagesAnswer, text: str) -> list[Action]:
    answer.add_call()
    answer.calls[-1]["input"] = text
    return answer.stream()


def _truncated_arguments(answer: MessagesAnswer) -> list[Action]:
    """The output limit falls into the input of the last call."""
    answer.add_call()
    text = dump_json(answer.calls[-1]["input"])
    answer.stop_reason = "max_tokens"
    return _with_input(answer, text[: len(text) // 2])


def _whole_arguments(answer: MessagesAnswer) -> list[Action]:
    """The input is whole in the start of its block, and there are no deltas of it."""
    answer.add_call()
    actions: list[Action] = []
    for action in answer.stream():
        if isinstance(action, dict) and answer.kind_of(action) == "call":
            continue
        if isinstance(action, dict) and action.get("content_block", {}).get("type") == "tool_use":
            action["content_block"]["input"] = answer.blocks[action["index"]]["input"]
        actions.append(action)
    return actions


def _incomplete(answer: MessagesAnswer, reason: str = "max_tokens", after: str = "text") -> list[Action]:
    """The message ends early but in good form, with that stop reason."""
    answer.stop_reason = reason
    actions = break_off(answer, after)
    open_block = next(
        (action["index"] for action in reversed(actions) if isinstance(action, dict) and "index" in action), None
    )
    stop: list[Event] = [] if open_block is None else [{"type": "content_block_stop", "index": open_block}]
    return [*actions, *stop, *answer.end()]


def _usage(answer: MessagesAnswer, where: str = "missing") -> list[Action]:
    """The usage in one event only: "start", "delta", or "missing"."""
    keeps = {"start": "message_start", "delta": "message_delta"}.get(where)
    actions = answer.stream()
    for action in actions:
        if isinstance(action, dict) and action["type"] != keeps:
            action.pop("usage", None)
            action.get("message", {}).pop("usage", None)
    return actions


def _strange_block(answer: MessagesAnswer) -> list[Action]:
    """A block of a type that no client knows, behind the others."""
    index = len(answer.blocks)
    block = {"type": "future_block", "future": "?"}
    delta = {"type": "future_delta", "future": "?"}
    return answer.around(
        [
            *(event for place in range(index) for event in answer.block_events(place)),
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    )


def _error_event(
    answer: MessagesAnswer, message: str = "Overloaded", kind: str = "overloaded_error", after: str = "nothing"
) -> list[Action]:
    return break_off(answer, after, {"type": "error", "error": {"type": kind, "message": message}})


MESSAGES_FAULTS: dict[str, Fault] = {
    **STREAM_FAULTS,
    "interleaved": _interleaved,
    "no_arguments": _no_arguments,
    "bad_arguments": _bad_arguments,
    "truncated_arguments": _truncated_arguments,
    "whole_arguments": _whole_arguments,
    "incomplete": _incomplete,
    "usage": _usage,
    "strange_block": _strange_block,
    "error_event": _error_event,
}
