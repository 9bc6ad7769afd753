"""Faults of chat chunk streams only, most of them in the fragments of tool calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from proxy.sandbox.model.pieces import words
from proxy.sandbox.model.reply import Say
from proxy.sandbox.play.actions import Action, Cut
from proxy.sandbox.play.stream_faults import ARGUMENT_FAULTS, GARBLED, STREAM_FAULTS, Fault, break_off, edited, without
from proxy.sandbox.wires.answer import Block, Event
from proxy.sandbox.wires.chat.answer import DONE, USAGE_PLACES, ChatAnswer

_ChunksOf = Callable[[ChatAnswer, Block], list[Event]]


def _normal(answer: ChatAnswer, call: Block) -> list[Event]:
    """The chunks of a call: the one that names it, then its arguments in pieces."""
    return answer.events_of(answer.call_places[call["index"]])


def _calls(chunks_of: _ChunksOf, count: int = 1) -> Fault:
    """The stream with these chunks for every call, and with at least `count` calls."""

    def fault(answer: ChatAnswer) -> list[Action]:
        answer.add_calls(count)
        return answer.around([chunk for call in answer.calls for chunk in chunks_of(answer, call)])

    return fault


def _entries(rewrite: Callable[[dict[str, Any]], object], count: int = 1) -> Fault:
    """The stream with every entry of `tool_calls` changed in place."""

    def chunks_of(answer: ChatAnswer, call: Block) -> list[Event]:
        chunks = _normal(answer, call)
        for chunk in chunks:
            rewrite(chunk["choices"][0]["delta"]["tool_calls"][0])
        return chunks

    return _calls(chunks_of, count)


def _arguments_before_name(answer: ChatAnswer, call: Block) -> list[Event]:
    """Sends the first fragment of each call before the chunk with its name."""
    opening, first, *rest = _normal(answer, call)
    return [first, opening, *rest]


def _repeated_names(answer: ChatAnswer, call: Block) -> list[Event]:
    """Repeats id and name in each fragment."""
    chunks = (chunk["choices"][0]["delta"]["tool_calls"][0]["function"] for chunk in _normal(answer, call))
    return [answer.opening_chunk(call, function["arguments"]) for function in chunks]


def _name_in_pieces(answer: ChatAnswer, call: Block) -> list[Event]:
    """Sends the name in two parts."""
    name = call["name"]
    half = len(name) // 2
    rest = answer.call_chunk(call, {"name": name[half:]})
    return [answer.opening_chunk(call, name=name[:half]), rest, *_normal(answer, call)[1:]]


def _arguments_at_end(answer: ChatAnswer) -> list[Action]:
    """Names all calls first; the finishing chunk has all the arguments."""
    actions = _calls(lambda answer, call: [answer.opening_chunk(call)])(answer)
    entries = [{"index": call["index"], "function": {"arguments": call["arguments"]}} for call in answer.calls]
    _finishing(actions)["choices"][0]["delta"] = {"tool_calls": entries}
    return actions


def _whole_arguments(answer: ChatAnswer, as_object: bool = False) -> list[Action]:
    """Sends a call in one chunk; `as_object`: with the arguments as a JSON object instead of text."""
    read: Callable[[str], Any] = json.loads if as_object else str
    return _calls(lambda answer, call: [answer.opening_chunk(call, read(call["arguments"]))])(answer)


def _text_between(answer: ChatAnswer, text: str = "Now the next one.") -> list[Action]:
    """Adds text after each call."""
    said = [answer.text_event(word) for word in words(text)]
    return _calls(lambda answer, call: [*_normal(answer, call), *said], 2)(answer)


def _late_thought(answer: ChatAnswer) -> list[Action]:
    """Adds reasoning after the text and the calls."""
    answer.add_thought()
    thought = [answer.delta(reasoning_content=word) for word in words(answer.text_of("thinking"))]
    return answer.around([*answer.call_events(), *thought])


def _usage(answer: ChatAnswer, where: str = "missing") -> list[Action]:
    """Sends the usage in one place only: "own", "finish", "choice", or "missing"."""
    if where not in (*USAGE_PLACES, "missing"):
        raise ValueError(f"usage is in {', '.join(USAGE_PLACES)} or is missing")
    answer.usage_places, answer.asked_usage = [where], True
    return answer.stream()


def _no_done(actions: list[Action]) -> list[Action]:
    return [action for action in actions if action != DONE]


def _because(answer: ChatAnswer, reason: str) -> ChatAnswer:
    answer.reason = reason
    return answer


def _several_choices(answer: ChatAnswer, index: int = 0) -> list[Action]:
    """Puts the last text and the finish reason into two entries of one `choices`; `index` is that of the second."""
    if not answer.text_of("text"):
        answer.say([Say("Done.")])
    actions = answer.stream()
    finishing = _finishing(actions)
    finishing["choices"] = [*answer.text_event(" The end.")["choices"], {**finishing["choices"][0], "index": index}]
    return actions


def _second_choice(answer: ChatAnswer, text: str = "another answer ") -> list[Action]:
    """Adds a word of a second answer, at index 1, to every word of text."""
    second = {"index": 1, "delta": {"content": text}, "finish_reason": None}
    return edited(
        answer.stream(), lambda event: event["choices"].append(second) if answer.kind_of(event) == "text" else None
    )


def _explicit_nulls(event: Event) -> None:
    """Fills missing members of a delta with null."""
    for choice in event["choices"]:
        empty = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
        choice["delta"] = {**empty, **choice["delta"]}


def _finishing(actions: list[Action]) -> Event:
    """The chunk with the finish reason."""
    return next(action for action in actions if isinstance(action, dict) and _is_finishing(action))


def _up_to_reason(answer: ChatAnswer) -> list[Action]:
    actions = answer.stream()
    return actions[: actions.index(_finishing(actions)) + 1]


def _is_finishing(chunk: Event) -> bool:
    return any(choice.get("finish_reason") for choice in chunk.get("choices", ()))


CHAT_FAULTS: dict[str, Fault] = {
    **STREAM_FAULTS,
    **ARGUMENT_FAULTS,
    # neither a finish reason nor `[DONE]`: cut short, with a well-formed body
    "end_without_terminal": lambda answer: _no_done(without(answer.stream(), _is_finishing)),
    "arguments_before_name": _calls(_arguments_before_name),
    # every call is at index 0; only the ids differ
    "index_restarts": _entries(lambda entry: entry.update(index=0), 2),
    "missing_index": _entries(lambda entry: entry.pop("index")),
    # no call has an id, or each has an empty one
    "missing_ids": lambda answer, empty=False: _entries(
        lambda entry: entry.update(id="") if empty and "id" in entry else entry.pop("id", None)
    )(answer),
    "missing_names": _entries(lambda entry: entry["function"].pop("name", None)),
    "repeated_names": _calls(_repeated_names),
    "name_in_pieces": _calls(_name_in_pieces),
    "arguments_at_end": _arguments_at_end,
    "whole_arguments": _whole_arguments,
    "text_between": _text_between,
    "late_thought": _late_thought,
    "usage": _usage,
    # no finish reason, but the rest of a good end
    "no_finish": lambda answer: without(answer.stream(), _is_finishing),
    "no_done": lambda answer: _no_done(answer.stream()),
    # another reason than the right one: "stop" after calls, "function_call", "content_filter", an unknown word
    "finish_reason": lambda answer, reason="stop": _because(answer, reason).stream(),
    "incomplete": lambda answer, reason="length", after="text": break_off(
        answer, after, *_because(answer, reason).end()
    ),
    "several_choices": _several_choices,
    "second_choice": _second_choice,
    "explicit_nulls": lambda answer: edited(answer.stream(), _explicit_nulls),
    # everything except the usage and the end
    "cut_after_reason": lambda answer, reset=False: [*_up_to_reason(answer), Cut(reset)],
    "end_after_reason": lambda answer, garbled=False: [*_up_to_reason(answer), *([GARBLED] if garbled else ())],
    "error_event": lambda answer, message="overloaded", kind="server_error", after="nothing", code=None: break_off(
        answer, after, answer.failure(message, kind, code)
    ),
    # the error's members at the top level of a chunk
    "flat_error": lambda answer, message="boom", code=400: break_off(
        answer, "nothing", {"object": "error", "message": message, "type": "BadRequestError", "code": code}
    ),
}
