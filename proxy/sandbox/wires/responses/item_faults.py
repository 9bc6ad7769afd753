"""The faults in which the stream is whole but an item comes in a form that clients stumble over."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.play.actions import Action, Stall
from proxy.sandbox.play.stream_faults import Fault
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.responses.answer import ARGUMENTS_DELTA, TEXT_DELTA, THINKING_DELTA, ResponsesAnswer

_ARGUMENTS_DONE = "response.function_call_arguments.done"
_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"


def _arguments_in_done(answer: ResponsesAnswer) -> list[Action]:
    """No deltas of arguments; they come whole, in two places."""
    return without(answer.events(answer.with_calls()), ARGUMENTS_DELTA)


def _arguments_in_item(answer: ResponsesAnswer) -> list[Action]:
    """Only the finished item has the arguments."""
    return without(answer.events(answer.with_calls()), ARGUMENTS_DELTA, _ARGUMENTS_DONE)


def _no_arguments(answer: ResponsesAnswer) -> list[Action]:
    """A call whose arguments are an empty text everywhere."""
    items = answer.with_calls()
    return [*answer.events([{**item, "arguments": ""} if "arguments" in item else item for item in items])]


def _no_deltas(answer: ResponsesAnswer, whole: str = "done") -> list[Action]:
    """Text comes only whole: in `output_text.done` (and the item), or with `whole` "item" in the item alone."""
    events = without(answer.events(), TEXT_DELTA, THINKING_DELTA, ARGUMENTS_DELTA)
    return events if whole == "done" else without(events, "response.output_text.done")


def _read_pages_empty(answer: ResponsesAnswer) -> list[Action]:
    return [*answer.events(answer.with_read(pages=""))]


def _read_huge_offset(answer: ResponsesAnswer, offset: int = 1_300_000) -> list[Action]:
    return [*answer.events(answer.with_read(offset=offset, limit=20))]


def _read_spaces(answer: ResponsesAnswer, spaces: int = 1024, closed: bool = True, stall: bool = False) -> list[Action]:
    """The model loses itself in blanks before the closing brace, or (`closed` false) instead of it."""
    items = answer.with_read(pages="")
    text = items[-1]["arguments"]
    items[-1] = {**items[-1], "arguments": text[:-1] + " " * spaces + ("}" if closed else "")}
    events = answer.events(items)
    kept = without(events, ARGUMENTS_DELTA)
    start = next(place for place, event in enumerate(kept) if event["type"] == _ARGUMENTS_DONE)
    where = {"type": ARGUMENTS_DELTA, "item_id": items[-1]["id"], "output_index": len(items) - 1}
    deltas: list[Action] = [{**where, "delta": text[:-1] + " " * spaces}]
    if stall:
        return [*kept[:start], *deltas, Stall()]
    return [*kept[:start], *deltas, *([{**where, "delta": "}"}] if closed else []), *kept[start:]]


def _interleaved(answer: ResponsesAnswer) -> list[Action]:
    """Two calls grow at the same time, one event of each in turn."""
    events = answer.events(answer.with_calls(2))
    calls = [place for place, item in enumerate(answer.items) if item["type"] == "function_call"][-2:]
    first, second = ([event for event in events if event.get("output_index") == place] for place in calls)
    rest = [event for event in events[:-1] if event.get("output_index") not in calls]
    mixed: list[Event] = []
    for place in range(max(len(first), len(second))):
        mixed += first[place : place + 1] + second[place : place + 1]
    return [*rest, *mixed, events[-1]]


def _sealed(answer: ResponsesAnswer, added: str | None, done: str | None) -> list[Action]:
    """Where the sealed content of reasoning appears, and with which nonce (None: nowhere)."""
    events = answer.events(answer.with_reasoning())
    nonces = {_ADDED: added, _DONE: done}
    for event in events:
        item: dict[str, Any] = event.get("item", {})
        if item.get("type") == "reasoning":
            event["item"] = {name: value for name, value in item.items() if name != "encrypted_content"}
            nonce = nonces[event["type"]]
            if nonce is not None:
                event["item"]["encrypted_content"] = answer.writer.reseal(item, nonce)
    return [*events]


def without(events: list[Event], *kinds: str) -> list[Any]:
    """The events without those of the kinds."""
    return [event for event in events if event["type"] not in kinds]


ITEM_FAULTS: dict[str, Fault] = {
    "arguments_in_done": _arguments_in_done,
    "arguments_in_item": _arguments_in_item,
    "no_arguments": _no_arguments,
    "no_deltas": _no_deltas,
    "read_pages_empty": _read_pages_empty,
    "read_huge_offset": _read_huge_offset,
    "read_spaces": _read_spaces,
    "interleaved": _interleaved,
    "sealed_only_added": lambda answer: _sealed(answer, "early", None),
    "sealed_only_done": lambda answer: _sealed(answer, None, "late"),
    "sealed_differs": lambda answer: _sealed(answer, "early", "late"),
}
