"""The faults that any stream can have, on whatever wire: each turns the normal answer into the actions to play instead.

A fault is a function of the answer and of the parameters of its script step; its signature is the list of those
parameters. `after` says how much of the normal answer comes first: "nothing", "created", "thinking", "text" (one
delta of it), "call" (one delta of arguments).
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.core.sse import dump_json
from proxy.sandbox.play.actions import Action, Cut, Pause, Raw, Stall
from proxy.sandbox.wires.answer import Answer

#: More than a reader of frames should take in one piece.
HUGE_BYTES = 9 * 1024 * 1024

#: How much of a frame's data is left when it is broken off.
_HALF = 22

Fault = Callable[..., list[Action]]


def prepared(answer: Answer, after: str) -> tuple[list[Action], int]:
    """The normal actions and how many of them come first; with a call or a thought when it is to happen within one.

    What `after` names may not occur: then it is the opening.
    """
    if after == "call":
        answer.add_call()
    elif after == "thinking":
        answer.add_thought()
    actions = answer.stream()
    if after == "nothing":
        return actions, 0
    found = (
        place for place, action in enumerate(actions, 1) if isinstance(action, dict) and answer.kind_of(action) == after
    )
    return actions, next(found, answer.opening)


def insert(answer: Answer, after: str, *actions: Action) -> list[Action]:
    """The normal answer with these actions inside."""
    normal, place = prepared(answer, after)
    return [*normal[:place], *actions, *normal[place:]]


def break_off(answer: Answer, after: str, *actions: Action) -> list[Action]:
    """The beginning of the normal answer, then these actions and nothing else."""
    normal, place = prepared(answer, after)
    return [*normal[:place], *actions]


def _cut_frame(answer: Answer, reset: bool = False) -> list[Action]:
    """The connection ends in the middle of a frame."""
    frame = answer.encode([answer.text_event("x" * 40)])
    return break_off(answer, "text", Raw(frame[: len(frame) // 2]), Cut(reset))


def _malformed_json(answer: Answer, after: str = "text") -> list[Action]:
    frame = answer.encode([answer.text_event("x")])
    end = frame.index(b"data: ") + len(b"data: ") + _HALF
    return insert(answer, after, Raw(frame[:end] + b"\n\n"))


def _invalid_utf8(answer: Answer, after: str = "text") -> list[Action]:
    return insert(answer, after, Raw(answer.encode([answer.text_event("@@")]).replace(b"@@", b"\xff\xfe")))


def _huge_frame(answer: Answer, after: str = "text", size: int = HUGE_BYTES) -> list[Action]:
    return insert(answer, after, Raw(answer.encode([answer.text_event("x" * size)])))


def _silence(answer: Answer, after: str, seconds: float | None) -> list[Action]:
    """`seconds` None: for ever."""
    return insert(answer, after, Stall() if seconds is None else Pause(seconds))


def between(answer: Answer, action: Callable[[int], Action]) -> list[Action]:
    """The normal answer with a action before each event, which is told the number of the event."""
    return [one for place, event in enumerate(answer.stream()) for one in (action(place), event)]


def _comments_only(answer: Answer, count: int = 5, every_s: float = 0.05) -> list[Action]:
    """For a while nothing but comments."""
    pulse: list[Action] = [Pause(every_s), Raw(b": keepalive\n\n")]
    return insert(answer, "created", *(pulse * count))


def _late_events(answer: Answer) -> list[Action]:
    """More of the same after the end: a delta, and a failure that contradicts it."""
    return [*answer.stream(), answer.text_event("too late"), answer.failure()]


def _empty(answer: Answer, message: bool = False) -> list[Action]:
    """A success without output, or with a message that has no text."""
    answer.clear(message=message)
    return answer.stream()


def _end_without_terminal(answer: Answer) -> list[Action]:
    actions = answer.stream()
    return actions[: next(place for place, action in enumerate(actions) if answer.is_terminal(action))]


def stream_bytes(answer: Answer) -> bytes:
    """The normal answer as the bytes that go over the wire."""
    data = b""
    for action in answer.stream():
        if isinstance(action, dict):
            data += answer.encode([action])
        elif isinstance(action, Raw):
            data += action.data
    return data


def _tiny_writes(answer: Answer, size: int = 1) -> list[Action]:
    data = stream_bytes(answer) + answer.tail
    return [Raw(data[start : start + size]) for start in range(0, len(data), size)]


def _crlf(answer: Answer) -> list[Action]:
    return [Raw((stream_bytes(answer) + answer.tail).replace(b"\n", b"\r\n"))]


def _fixed_call_ids(answer: Answer, prefix: str = "call_") -> list[Action]:
    answer.add_call()
    answer.fix_call_ids(prefix)
    return answer.stream()


#: Faults of framing, timing and endings.
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
    "huge_frame": _huge_frame,
    "silence_before_head": lambda answer, seconds=5.0: _silence(answer, "nothing", seconds),
    "silence_after_created": lambda answer, seconds=5.0: _silence(answer, "created", seconds),
    "silence_mid_text": lambda answer, seconds=5.0: _silence(answer, "text", seconds),
    "silence_mid_arguments": lambda answer, seconds=5.0: _silence(answer, "call", seconds),
    "keepalives": lambda answer: between(answer, lambda _: answer.keepalive()),
    "unknown_events": lambda answer: between(answer, answer.strange_event),
    "comments": lambda answer: between(answer, lambda _: Raw(b": keepalive\n\n")),
    "comments_only": _comments_only,
    "late_events": _late_events,
    "done_sentinel": lambda answer: [*answer.stream(), Raw(b"data: [DONE]\n\n")],
    "empty": _empty,
    "tiny_writes": _tiny_writes,
    "crlf": _crlf,
    "fixed_call_ids": _fixed_call_ids,
}


def _whole_bytes(answer: Answer) -> bytes:
    return dump_json(answer.whole()).encode()


def _half(answer: Answer, *actions: Action) -> list[Action]:
    data = _whole_bytes(answer)
    return [Raw(data[: len(data) // 2]), *actions]


def _whole_empty(answer: Answer, message: bool = False) -> list[Action]:
    answer.clear(message=message)
    return [Raw(_whole_bytes(answer))]


def _whole_silence(answer: Answer, seconds: float | None = 5.0) -> list[Action]:
    return [Stall() if seconds is None else Pause(seconds), Raw(_whole_bytes(answer))]


def _whole_huge(answer: Answer, size: int = HUGE_BYTES) -> list[Action]:
    return [Raw(dump_json({**answer.whole(), "padding": "x" * size}).encode())]


def _whole_fixed_call_ids(answer: Answer, prefix: str = "call_") -> list[Action]:
    answer.add_call()
    answer.fix_call_ids(prefix)
    return [Raw(_whole_bytes(answer))]


#: What of that an answer without a stream can have.
WHOLE_FAULTS: dict[str, Fault] = {
    "cut_before_output": lambda answer, reset=False: [Raw(_whole_bytes(answer)[:1]), Cut(reset)],
    "cut_text": lambda answer, reset=False: _half(answer, Cut(reset)),
    "malformed_json": lambda answer: _half(answer),
    "invalid_utf8": lambda answer: [Raw(_whole_bytes(answer)[:-1] + b',"x":"\xff\xfe"}')],
    "huge_frame": _whole_huge,
    "silence_before_head": _whole_silence,
    "empty": _whole_empty,
    "fixed_call_ids": _whole_fixed_call_ids,
}
