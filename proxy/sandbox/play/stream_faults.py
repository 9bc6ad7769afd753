"""Faults of any stream, on any wire: each turns the normal answer into the actions to play instead.

A fault is a function of the answer and of its script step's parameters, which its signature lists. `after` says how
much of the normal answer comes first: "nothing", "created", "thinking", "text" (one delta of it), "call" (one delta of
arguments).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

from proxy.core.sse import dump_json
from proxy.sandbox.play.actions import Action, Cut, Pause, Raw, silence
from proxy.sandbox.wires.answer import Answer, Event

#: More than a reader of frames should accept in one piece.
HUGE_BYTES = 9 * 1024 * 1024

#: Bytes that remain of a broken-off frame's data.
_HALF = 22

Fault = Callable[..., list[Action]]


def begun(answer: Answer, after: str) -> tuple[list[Action], int]:
    """The normal actions, and how many of them come first. A call or a thought is added if `after` needs one.

    Without the point that `after` names, only the opening comes first."""
    if after == "call":
        answer.add_calls()
    elif after == "thinking":
        answer.add_thought()
    actions = answer.stream()
    if after == "nothing":
        return actions, 0
    found = (number for number, one in enumerate(actions, 1) if isinstance(one, dict) and answer.kind_of(one) == after)
    return actions, next(found, answer.opening)


def insert(answer: Answer, after: str, *actions: Action) -> list[Action]:
    """The normal answer with these actions inserted."""
    normal, place = begun(answer, after)
    return [*normal[:place], *actions, *normal[place:]]


def break_off(answer: Answer, after: str, *actions: Action) -> list[Action]:
    """The beginning of the normal answer, then these actions and nothing else."""
    normal, place = begun(answer, after)
    return [*normal[:place], *actions]


def between(answer: Answer, action: Callable[[int], Action]) -> list[Action]:
    """The normal answer with an action before each event; `action` gets the event's number."""
    return [one for place, event in enumerate(answer.stream()) for one in (action(place), event)]


def without(actions: list[Action], unwanted: Callable[[Event], object]) -> list[Action]:
    """The actions without the events of that kind."""
    return [one for one in actions if not (isinstance(one, dict) and unwanted(one))]


def edited(actions: list[Action], edit: Callable[[Event], object]) -> list[Action]:
    """The actions, with each event changed in place."""
    for one in actions:
        if isinstance(one, dict):
            edit(one)
    return actions


def with_arguments(answer: Answer, text: Callable[[str], str], *, all_calls: bool = False) -> list[Action]:
    """The stream with other arguments in the last call, or in all calls."""
    answer.add_calls()
    for call in answer.calls if all_calls else answer.calls[-1:]:
        call[answer.arguments_member] = text(answer.arguments_of(call))
    return answer.stream()


def _cut_frame(answer: Answer, reset: bool = False) -> list[Action]:
    """Ends the connection in the middle of a frame."""
    frame = answer.encode([answer.text_event("x" * 40)])
    return break_off(answer, "text", Raw(frame[: len(frame) // 2]), Cut(reset))


#: A frame that is not an event.
GARBLED = Raw(b'data: {"\n\n')


def _malformed_json(answer: Answer, after: str = "text") -> list[Action]:
    frame = answer.encode([answer.text_event("x")])
    end = frame.index(b"data: ") + len(b"data: ") + _HALF
    return insert(answer, after, Raw(frame[:end] + b"\n\n"))


def _invalid_utf8(answer: Answer, after: str = "text") -> list[Action]:
    return insert(answer, after, Raw(answer.encode([answer.text_event("@@")]).replace(b"@@", b"\xff\xfe")))


def huge_frame(answer: Answer, after: str = "text", size: int = HUGE_BYTES) -> list[Action]:
    return insert(answer, after, Raw(answer.encode([answer.text_event("x" * size)])))


def _comments_only(answer: Answer, count: int = 5, every_s: float = 0.05) -> list[Action]:
    pulse: list[Action] = [Pause(every_s), Raw(b": keepalive\n\n")]
    return insert(answer, "created", *(pulse * count))


def _named_error(
    answer: Answer, message: str = "boom", kind: str = "overloaded_error", after: str = "nothing", plain: bool = False
) -> list[Action]:
    """An error that only its event name marks; `plain`: as text instead of JSON; an empty message: without data."""
    data = message if plain else dump_json({"type": kind, "message": message} if message else {})
    return break_off(answer, after, Raw(f"event: error\ndata: {data}\n\n".encode()))


def _cleared(answer: Answer, message: bool) -> Answer:
    answer.clear(message=message)
    return answer


def _end_without_terminal(answer: Answer) -> list[Action]:
    actions = answer.stream()
    return actions[: next(place for place, action in enumerate(actions) if answer.is_terminal(action))]


def stream_bytes(answer: Answer) -> bytes:
    """The normal answer and its tail as the bytes that go over the wire."""
    sent = (answer.encode([one]) if isinstance(one, dict) else one for one in answer.finished(answer.stream()))
    return b"".join(one.data if isinstance(one, Raw) else one for one in sent if isinstance(one, bytes | Raw))


def pieces_of(data: bytes, size: int) -> list[Action]:
    """The bytes in writes of that size."""
    return [Raw(data[start : start + size]) for start in range(0, len(data), size)]


def _interleaved(answer: Answer) -> list[Action]:
    """Interleaves the events of the calls, one of each in turn."""
    answer.add_calls(2)
    turns = zip_longest(*(answer.events_of(place) for place in answer.call_places))
    return answer.around([event for turn in turns for event in turn if event is not None])


def _with_fixed_ids(answer: Answer, prefix: str) -> Answer:
    answer.add_calls()
    answer.fix_call_ids(prefix)
    return answer


#: Faults of framing, timing and endings, and of calls on every wire.
STREAM_FAULTS: dict[str, Fault] = {
    "cut_before_output": lambda answer, reset=False: break_off(answer, "created", Cut(reset)),
    "cut_text": lambda answer, reset=False: break_off(answer, "text", Cut(reset)),
    "cut_thinking": lambda answer, reset=False: break_off(answer, "thinking", Cut(reset)),
    "cut_arguments": lambda answer, reset=False: break_off(answer, "call", Cut(reset)),
    "cut_frame": _cut_frame,
    "cut_after_terminal": lambda answer, reset=False: [*answer.stream(), Cut(reset)],
    "end_without_terminal": _end_without_terminal,
    "end_before_output": lambda answer: break_off(answer, "created"),
    "malformed_json": _malformed_json,
    "invalid_utf8": _invalid_utf8,
    "huge_frame": huge_frame,
    "silence_before_head": lambda answer, seconds=5.0: insert(answer, "nothing", silence(seconds)),
    "silence_after_created": lambda answer, seconds=5.0: insert(answer, "created", silence(seconds)),
    "silence_mid_text": lambda answer, seconds=5.0: insert(answer, "text", silence(seconds)),
    "silence_mid_arguments": lambda answer, seconds=5.0: insert(answer, "call", silence(seconds)),
    "keepalives": lambda answer: between(answer, lambda _: answer.keepalive()),
    "unknown_events": lambda answer: between(answer, answer.strange_event),
    "comments": lambda answer: between(answer, lambda _: Raw(b": keepalive\n\n")),
    "comments_only": _comments_only,
    # more after the end: a delta, and a failure that contradicts it
    "late_events": lambda answer: [*answer.stream(), answer.text_event("too late"), answer.failure()],
    "done_sentinel": lambda answer: [*answer.stream(), Raw(b"data: [DONE]\n\n")],
    # a success without output, or with a message that has no text
    "empty": lambda answer, message=False: _cleared(answer, message).stream(),
    "tiny_writes": lambda answer, size=1: pieces_of(stream_bytes(answer), size),
    "crlf": lambda answer: [Raw(stream_bytes(answer).replace(b"\n", b"\r\n"))],
    "fixed_call_ids": lambda answer, prefix="call_": _with_fixed_ids(answer, prefix).stream(),
    # one piece of JSON: a gateway without streams
    "json_answer": lambda answer: [Raw(_whole_bytes(answer))],
    "named_error": _named_error,
    "no_arguments": lambda answer: with_arguments(answer, lambda _: "", all_calls=True),
    "interleaved": _interleaved,
}

#: Faults of arguments that come as text: not a JSON object, or cut by the output limit.
ARGUMENT_FAULTS: dict[str, Fault] = {
    "bad_arguments": lambda answer, arguments="[1]": with_arguments(answer, lambda _: arguments),
    "truncated_arguments": lambda answer: with_arguments(_limited(answer), lambda text: text[: len(text) // 2]),
}


def _limited(answer: Answer) -> Answer:
    answer.reason = answer.limit_reason
    return answer


def _whole_bytes(answer: Answer, **members: object) -> bytes:
    return dump_json({**answer.whole(), **members}).encode()


def _half(answer: Answer, *actions: Action) -> list[Action]:
    data = _whole_bytes(answer)
    return [Raw(data[: len(data) // 2]), *actions]


#: The faults that an answer without a stream can have.
WHOLE_FAULTS: dict[str, Fault] = {
    "cut_before_output": lambda answer, reset=False: [Raw(_whole_bytes(answer)[:1]), Cut(reset)],
    "cut_text": lambda answer, reset=False: _half(answer, Cut(reset)),
    "malformed_json": lambda answer: _half(answer),
    "invalid_utf8": lambda answer: [Raw(_whole_bytes(answer)[:-1] + b',"x":"\xff\xfe"}')],
    "huge_frame": lambda answer, size=HUGE_BYTES: [Raw(_whole_bytes(answer, padding="x" * size))],
    "silence_before_head": lambda answer, seconds=5.0: [silence(seconds), Raw(_whole_bytes(answer))],
    "empty": lambda answer, message=False: [Raw(_whole_bytes(_cleared(answer, message)))],
    "fixed_call_ids": lambda answer, prefix="call_": [Raw(_whole_bytes(_with_fixed_ids(answer, prefix)))],
}
