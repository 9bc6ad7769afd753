"""The faults that only this service's streams have: other frames, other forms of thoughts, calls and searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import cycle
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.p3.answer import GrokAnswer
from proxy.sandbox.p3.search_faults import SEARCH_FAULTS, tool_thought
from proxy.sandbox.play.actions import BARE, Action, Pause, Raw, Stall
from proxy.sandbox.play.stream_faults import Fault, between, break_off, edited, insert, without
from proxy.sandbox.wires.answer import Block, Event
from proxy.sandbox.wires.responses.answer import ARGUMENTS_DELTA, TEXT_DELTA
from proxy.sandbox.wires.responses.faults import RESPONSES_FAULTS

_DONE = "response.output_item.done"
_ARGUMENTS_DONE = "response.function_call_arguments.done"

#: Frames that say nothing: comments, those without data, and those with empty data.
_SILENT = (b": keepalive\n\n", b"id: 42\n\n", b"event: ping\n\n", b"retry: 5\n\n")
_BLANK = (b"data:\n\n", b"data\n\n")

Edit = Callable[[Event], object]


def _raw(answer: GrokAnswer, change: Callable[[bytes], bytes]) -> list[Action]:
    """The stream and its tail in one write, its bytes changed."""
    sent = [answer.encode([one]) if isinstance(one, dict) else one for one in answer.finished(answer.stream())]
    return [
        Raw(change(b"".join(one.data if isinstance(one, Raw) else one for one in sent if isinstance(one, bytes | Raw))))
    ]


def _data_only(answer: GrokAnswer) -> list[Action]:
    """Without names of events."""
    actions = answer.stream()
    answer.finished(actions)  # numbers them
    return [Raw(BARE.encode([one for one in actions if isinstance(one, dict)]) + answer.tail)]


def _mixed_ends(data: bytes) -> bytes:
    """Lines that end in each of the three ways."""
    ends = cycle((b"\r\n", b"\n", b"\r"))
    return b"".join(line + next(ends) * 2 for line in data.split(b"\n\n") if line)


def _silent_frames(answer: GrokAnswer, blank: bool = False) -> list[Action]:
    """`blank`: some have data without a character, which the vendor's own client does not bear."""
    frames = (*_SILENT, *(_BLANK if blank else ()))
    return between(answer, lambda place: Raw(frames[place % len(frames)]))


def _held_open(answer: GrokAnswer, seconds: float | None = None, done: bool = True) -> list[Action]:
    """Behind the end the connection stays open; None: for ever."""
    tail: tuple[Action, ...] = (Raw(answer.tail),) if done else ()
    return [*answer.stream(), *tail, Stall() if seconds is None else Pause(seconds)]


def _minimal(answer: GrokAnswer) -> list[Action]:
    """Deltas of text and the end, which says nothing of them."""
    kept = [one for one in answer.stream() if isinstance(one, dict) and one["type"] == TEXT_DELTA]
    return [*kept, answer.terminal("completed", output=[])]


def _terminal_only(answer: GrokAnswer) -> list[Action]:
    """All that there is stands in the last event."""
    return [answer.terminal("completed")]


def _thoughts_as_text(answer: GrokAnswer) -> list[Action]:
    """Thoughts come as `reasoning_text` instead of summaries."""

    def edit(event: Event) -> None:
        kind = event["type"]
        if kind.startswith("response.reasoning_summary_text"):
            event["type"] = kind.replace("reasoning_summary_text", "reasoning_text")
            event["content_index"] = event.pop("summary_index")
        elif event.get("item", {}).get("type") == "reasoning":
            event["item"] = _with_content(event["item"])

    answer.add_thought()
    kept = without(answer.stream(), lambda event: event["type"].startswith("response.reasoning_summary_part"))
    return edited(kept, edit)


def _with_content(item: Block) -> Block:
    parts = [{"type": "reasoning_text", "text": part["text"]} for part in item["summary"]]
    return {**item, "summary": [], "content": parts}


def _thoughts_only(answer: GrokAnswer) -> list[Action]:
    answer.clear(message=False)
    answer.add_thought()
    return answer.stream()


def _empty_thoughts(answer: GrokAnswer) -> list[Action]:
    """A thought that is nothing but encrypted content stands before each item."""
    answer.blocks = [one for block in answer.blocks for one in (tool_thought(answer), block)]
    return answer.stream()


def _calls(answer: GrokAnswer, edit: Edit, *less: str) -> list[Action]:
    """The stream of an answer with a call, its events of these types left out and the others edited."""
    answer.add_calls()
    return edited(without(answer.stream(), lambda event: event["type"] in less), edit)


def _named_by_call(answer: GrokAnswer) -> list[Action]:
    """Arguments belong to a `call_id`, not to an item."""
    answer.add_calls()
    ids = {call["id"]: call["call_id"] for call in answer.calls}

    def edit(event: Event) -> None:
        if event.get("item_id") in ids:
            event["call_id"] = ids[event.pop("item_id")]
            event.pop("output_index")

    return edited(answer.stream(), edit)


def _at_once(answer: GrokAnswer) -> list[Action]:
    """All arguments in one delta, and nothing that repeats them."""
    answer.add_calls()
    whole = {call["id"]: call["arguments"] for call in answer.calls}

    def edit(event: Event) -> None:
        if event["type"] == _ARGUMENTS_DONE:
            event["type"], event["delta"] = ARGUMENTS_DELTA, whole[event["item_id"]]
            event.pop("arguments")

    return _calls(answer, edit, ARGUMENTS_DELTA)


def _not_done(answer: GrokAnswer) -> list[Action]:
    """A call begins and has all of its arguments, and is nowhere said to be finished."""
    answer.add_calls()
    ids = {call["id"] for call in answer.calls}
    kept = without(
        answer.stream(),
        lambda event: event["type"] == _ARGUMENTS_DONE or (event["type"] == _DONE and event["item"]["id"] in ids),
    )
    return [*kept[:-1], answer.terminal("completed", output=[])]


def _mismatch(answer: GrokAnswer) -> list[Action]:
    """What is said to be the whole of the arguments is not what the pieces are."""

    def edit(event: Event) -> None:
        if event["type"] == _ARGUMENTS_DONE:
            event["arguments"] = '{"command":"something else"}'

    return _calls(answer, edit)


def _late_text_done(answer: GrokAnswer) -> list[Action]:
    """The end of a text is told when a call has already begun."""
    answer.add_calls()
    actions = answer.stream()
    late = [one for one in actions if isinstance(one, dict) and one["type"] == "response.output_text.done"]
    kept = without(actions, lambda event: event["type"] == "response.output_text.done")
    place = next(at for at, one in enumerate(kept, 1) if isinstance(one, dict) and one["type"] == ARGUMENTS_DELTA)
    return [*kept[:place], *late, *kept[place:]]


# -- control events and errors


def _doom_loop(answer: GrokAnswer, after: str = "thinking") -> list[Action]:
    """The model is caught in a loop, and goes on."""
    triggers = {"triggers": ["tail_repetition:4@thinking"]}
    return insert(answer, after, {"type": "response.doom_loop_check", "doom_loop_check": triggers})


def _untyped_error(
    answer: GrokAnswer, message: str = "boom", code: str = "internal", after: str = "nothing"
) -> list[Action]:
    """An error body as the data of a frame, which is no event."""
    body = dump_json({"error": {"message": message, "code": code}})
    return break_off(answer, after, Raw(f"data: {body}\n\n".encode()))


def _failed_later(answer: GrokAnswer, code: str, after: str, **members: Any) -> list[Action]:
    """A failure that says when to come again, or which status it would have been."""
    event = {"type": "error", "code": code, "message": "Please slow down.", "param": None}
    return break_off(answer, after, {**event, **{name: value for name, value in members.items() if value is not None}})


def _without_numbers(actions: Iterable[Action]) -> list[Action]:
    """The events as raw frames, so that nobody numbers them."""
    return [Raw(BARE.encode([one])) if isinstance(one, dict) else one for one in actions]


GROK_FAULTS: dict[str, Fault] = {
    **RESPONSES_FAULTS,
    "data_only": _data_only,
    "mixed_ends": lambda answer: _raw(answer, _mixed_ends),
    "byte_order_mark": lambda answer: _raw(answer, lambda data: b"\xef\xbb\xbf" + data),
    "silent_frames": _silent_frames,
    # the last frame lacks its blank line
    "unfinished_end": lambda answer: _raw(answer, lambda data: data.removesuffix(answer.tail).rstrip(b"\n")),
    "no_done": lambda answer: _held_open(answer, 0.0, done=False),
    "held_open": _held_open,
    "done_instead": lambda answer: [*answer.stream()[:-1], Raw(b"data: [DONE]\n\n")],
    "no_numbers": lambda answer: _without_numbers(answer.stream()),
    "minimal": _minimal,
    "terminal_only": _terminal_only,
    "thoughts_as_text": _thoughts_as_text,
    "thoughts_only": _thoughts_only,
    "empty_thoughts": _empty_thoughts,
    "named_by_call": _named_by_call,
    "arguments_at_once": _at_once,
    "call_not_done": _not_done,
    "arguments_mismatch": _mismatch,
    "late_text_done": _late_text_done,
    **SEARCH_FAULTS,
    "doom_loop": _doom_loop,
    "untyped_error": _untyped_error,
    "slow_down": lambda answer, after="nothing", code="rate_limit_exceeded", retry_after=2, status=None: _failed_later(
        answer, code, after, retry_after=retry_after, status=status
    ),
}
