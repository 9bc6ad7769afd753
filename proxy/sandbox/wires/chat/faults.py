"""The faults that only a stream of chat chunks can have, most of them in the fragments of tool calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from proxy.sandbox.model.pieces import words
from proxy.sandbox.play.actions import Action
from proxy.sandbox.play.stream_faults import STREAM_FAULTS, Fault, break_off
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.chat.answer import DONE, USAGE_PLACES, ChatAnswer

_Rewrite = Callable[[dict[str, Any]], dict[str, Any]]


def _calls(answer: ChatAnswer, rewrite: _Rewrite, count: int = 1) -> list[Action]:
    """The stream with every entry of `tool_calls` rewritten, and at least `count` calls in it."""
    answer.add_calls(count)
    chunks = [chunk for call in answer.calls for chunk in answer.call_chunks(call)]
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"]
        delta["tool_calls"] = [rewrite(entry) for entry in delta["tool_calls"]]
    return answer.around(chunks)


def _arguments_before_name(answer: ChatAnswer) -> list[Action]:
    """The first fragment of each call comes before the chunk that names it."""
    answer.add_call()
    chunks: list[Event] = []
    for call in answer.calls:
        opening, first, *rest = answer.call_chunks(call)
        chunks += [first, opening, *rest]
    return answer.around(chunks)


def _interleaved(answer: ChatAnswer) -> list[Action]:
    """The calls grow at the same time, one chunk of each in turn."""
    answer.add_calls(2)
    turns = zip_longest(*(answer.call_chunks(call) for call in answer.calls))
    return answer.around([chunk for turn in turns for chunk in turn if chunk is not None])


def _index_restarts(answer: ChatAnswer) -> list[Action]:
    """Every call is at index 0; only its id tells that it is another one."""
    return _calls(answer, lambda entry: {**entry, "index": 0}, 2)


def _missing_index(answer: ChatAnswer) -> list[Action]:
    return _calls(answer, lambda entry: {name: value for name, value in entry.items() if name != "index"})


def _missing_ids(answer: ChatAnswer, empty: bool = False) -> list[Action]:
    """No call has an id, or (`empty`) each has an empty one."""
    if empty:
        return _calls(answer, lambda entry: {**entry, "id": ""} if "id" in entry else entry)
    return _calls(answer, lambda entry: {name: value for name, value in entry.items() if name != "id"})


def _missing_names(answer: ChatAnswer) -> list[Action]:
    return _calls(
        answer, lambda entry: {**entry, "function": {n: v for n, v in entry["function"].items() if n != "name"}}
    )


def _repeated_names(answer: ChatAnswer) -> list[Action]:
    """Each fragment says id and name again."""
    answer.add_call()
    chunks = [chunk for call in answer.calls for chunk in answer.call_chunks(call)]
    for chunk in chunks:
        [entry] = chunk["choices"][0]["delta"]["tool_calls"]
        call = answer.calls[entry["index"]]
        entry |= {"id": call.call_id, "type": "function", "function": {"name": call.name, **entry["function"]}}
    return answer.around(chunks)


def _name_in_pieces(answer: ChatAnswer) -> list[Action]:
    """The name comes in two parts."""
    answer.add_call()
    chunks: list[Event] = []
    for call in answer.calls:
        half = len(call.name) // 2
        rest = answer.delta(tool_calls=[{"index": call.index, "function": {"name": call.name[half:]}}])
        chunks += [answer.opening_chunk(replace(call, name=call.name[:half])), rest, *answer.call_chunks(call)[1:]]
    return answer.around(chunks)


def _no_arguments(answer: ChatAnswer) -> list[Action]:
    """A call whose arguments are an empty text."""
    answer.add_call()
    answer.calls = [replace(call, arguments="") for call in answer.calls]
    return answer.stream()


def _bad_arguments(answer: ChatAnswer, arguments: str = "[1]") -> list[Action]:
    """Arguments that are no JSON object."""
    answer.add_call()
    answer.calls[-1] = replace(answer.calls[-1], arguments=arguments)
    return answer.stream()


def _truncated_arguments(answer: ChatAnswer) -> list[Action]:
    """The output limit falls into the arguments of the last call."""
    answer.add_call()
    last = answer.calls[-1]
    answer.calls[-1] = replace(last, arguments=last.arguments[: len(last.arguments) // 2])
    answer.finish = "length"
    return answer.stream()


def _arguments_at_end(answer: ChatAnswer) -> list[Action]:
    """All calls are named first; the finishing chunk has all the arguments."""
    answer.add_call()
    actions = answer.around([answer.opening_chunk(call) for call in answer.calls])
    finishing = _finishing(actions)
    finishing["choices"][0]["delta"] = {
        "tool_calls": [{"index": call.index, "function": {"arguments": call.arguments}} for call in answer.calls]
    }
    return actions


def _whole_arguments(answer: ChatAnswer, as_object: bool = False) -> list[Action]:
    """A call in one chunk; `as_object`: with the arguments as JSON object instead of as text of one."""
    answer.add_call()
    chunks = []
    for call in answer.calls:
        chunk = answer.opening_chunk(call)
        arguments = json.loads(call.arguments) if as_object else call.arguments
        chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] = arguments
        chunks.append(chunk)
    return answer.around(chunks)


def _text_between(answer: ChatAnswer, text: str = "Now the next one.") -> list[Action]:
    """Text behind each call."""
    answer.add_calls(2)
    chunks: list[Event] = []
    for call in answer.calls:
        chunks += [*answer.call_chunks(call), *(answer.delta(content=word) for word in words(text))]
    return answer.around(chunks)


def _late_thought(answer: ChatAnswer) -> list[Action]:
    """More reasoning behind the text and the calls."""
    answer.add_thought()
    calls = [chunk for call in answer.calls for chunk in answer.call_chunks(call)]
    return answer.around([*calls, *(answer.delta(reasoning_content=word) for word in words(answer.thought))])


def _usage(answer: ChatAnswer, where: str = "missing") -> list[Action]:
    """The usage in one place only: "own", "finish", "choice", or "missing"."""
    if where not in (*USAGE_PLACES, "missing"):
        raise ValueError(f"usage stands in {', '.join(USAGE_PLACES)} or is missing")
    answer.usage_places, answer.asked_usage = [where], True
    return answer.stream()


def _no_finish(answer: ChatAnswer) -> list[Action]:
    """No finish reason, but the rest of a good end."""
    return [action for action in answer.stream() if not (isinstance(action, dict) and _is_finishing(action))]


def _end_without_terminal(answer: ChatAnswer) -> list[Action]:
    """Neither a finish reason nor `[DONE]`: cut short, with a well-formed body."""
    return [action for action in _no_finish(answer) if action != DONE]


def _finish_reason(answer: ChatAnswer, reason: str = "stop") -> list[Action]:
    """Another reason than the right one: "stop" after calls, "function_call", "content_filter", an unknown word."""
    answer.finish = reason
    return answer.stream()


def _incomplete(answer: ChatAnswer, reason: str = "length", after: str = "text") -> list[Action]:
    answer.finish = reason
    return break_off(answer, after, *answer.end(), DONE)


def _several_choices(answer: ChatAnswer, index: int = 0) -> list[Action]:
    """The last words and the finish reason are two entries of one `choices`; `index` is that of the second."""
    answer.text = answer.text or "Done."
    actions = answer.stream()
    finishing = _finishing(actions)
    last = {**finishing["choices"][0], "index": index}
    finishing["choices"] = [*answer.text_event(" The end.")["choices"], last]
    return actions


def _second_choice(answer: ChatAnswer, text: str = "another answer ") -> list[Action]:
    """Every word of text comes beside one of a second answer, at index 1."""
    actions = answer.stream()
    for action in actions:
        if isinstance(action, dict) and answer.kind_of(action) == "text":
            action["choices"].append({"index": 1, "delta": {"content": text}, "finish_reason": None})
    return actions


def _explicit_nulls(answer: ChatAnswer) -> list[Action]:
    """What a delta does not have is there as null."""
    actions = answer.stream()
    for action in actions:
        for choice in action.get("choices", ()) if isinstance(action, dict) else ():
            empty = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
            choice["delta"] = {**empty, **choice["delta"]}
    return actions


def _error_event(
    answer: ChatAnswer, message: str = "overloaded", kind: str = "server_error", after: str = "nothing"
) -> list[Action]:
    return break_off(answer, after, {"error": {"message": message, "type": kind}})


def _finishing(actions: list[Action]) -> Event:
    """The chunk with the finish reason."""
    return next(action for action in actions if isinstance(action, dict) and _is_finishing(action))


def _is_finishing(chunk: Event) -> bool:
    return any(choice.get("finish_reason") for choice in chunk.get("choices", ()))


CHAT_FAULTS: dict[str, Fault] = {
    **STREAM_FAULTS,
    "end_without_terminal": _end_without_terminal,
    "arguments_before_name": _arguments_before_name,
    "interleaved": _interleaved,
    "index_restarts": _index_restarts,
    "missing_index": _missing_index,
    "missing_ids": _missing_ids,
    "missing_names": _missing_names,
    "repeated_names": _repeated_names,
    "name_in_pieces": _name_in_pieces,
    "no_arguments": _no_arguments,
    "bad_arguments": _bad_arguments,
    "truncated_arguments": _truncated_arguments,
    "arguments_at_end": _arguments_at_end,
    "whole_arguments": _whole_arguments,
    "text_between": _text_between,
    "late_thought": _late_thought,
    "usage": _usage,
    "no_finish": _no_finish,
    "no_done": lambda answer: [action for action in answer.stream() if action != DONE],
    "finish_reason": _finish_reason,
    "incomplete": _incomplete,
    "several_choices": _several_choices,
    "second_choice": _second_choice,
    "explicit_nulls": _explicit_nulls,
    "error_event": _error_event,
}
