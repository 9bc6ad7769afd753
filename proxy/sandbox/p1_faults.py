"""The faults that happen within an open stream: each turns the normal answer into the moves to play instead.

A fault is a function of the answer and of the parameters of its script step; its signature is the list of those
parameters. `after` says how much of the normal answer comes first: "nothing", "created", "thinking", "text" (one
delta of it), "call" (one delta of arguments).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxy.core.sse import encode_events
from proxy.sandbox.moves import Cut, Move, Pause, Raw, Stall
from proxy.sandbox.p1_answer import Answer
from proxy.sandbox.p1_failures import error_object
from proxy.sandbox.stream import Event, number, terminal

TEXT_DELTA = "response.output_text.delta"
THINKING_DELTA = "response.reasoning_summary_text.delta"
ARGUMENTS_DELTA = "response.function_call_arguments.delta"

#: More than a reader of frames should take in one piece.
HUGE_BYTES = 9 * 1024 * 1024

_AFTER = {"thinking": THINKING_DELTA, "text": TEXT_DELTA, "call": ARGUMENTS_DELTA}

Fault = Callable[..., list[Move]]


def place_after(events: list[Event], after: str) -> int:
    """Where to cut the events; behind `response.in_progress` when what `after` names does not occur."""
    if after == "nothing":
        return 0
    wanted = _AFTER.get(after)
    found = (place for place, event in enumerate(events, 1) if event["type"] == wanted)
    return next(found, 2)


def _prepared(answer: Answer, after: str) -> list[Event]:
    """The normal events, with a call or a thought added when the fault is to happen within one."""
    if after == "call":
        return answer.events(answer.with_calls())
    return answer.events(answer.with_reasoning()) if after == "thinking" else answer.events()


def _insert(answer: Answer, after: str, *moves: Move) -> list[Move]:
    events = _prepared(answer, after)
    place = place_after(events, after)
    return [*events[:place], *moves, *events[place:]]


def _break(answer: Answer, after: str, *moves: Move) -> list[Move]:
    events = _prepared(answer, after)
    return [*events[: place_after(events, after)], *moves]


def _cut(answer: Answer, after: str = "text", reset: bool = False) -> list[Move]:
    return _break(answer, after, Cut(reset))


def _cut_frame(answer: Answer, reset: bool = False) -> list[Move]:
    """The connection ends in the middle of a frame."""
    moves = _break(answer, "text")
    frame = encode_events([answer.events()[-1]])
    return [*moves, Raw(frame[: len(frame) // 2]), Cut(reset)]


def _malformed_json(answer: Answer, after: str = "text") -> list[Move]:
    return _insert(answer, after, Raw(b'event: response.output_text.delta\ndata: {"type":"response.outp\n\n'))


def _invalid_utf8(answer: Answer, after: str = "text") -> list[Move]:
    return _insert(answer, after, Raw(b'data: {"type":"response.output_text.delta","delta":"\xff\xfe"}\n\n'))


def _huge_frame(answer: Answer, after: str = "text", size: int = HUGE_BYTES) -> list[Move]:
    event = {"type": TEXT_DELTA, "output_index": 0, "content_index": 0, "delta": "x" * size}
    return _insert(answer, after, Raw(encode_events([event])))


def _silence(answer: Answer, after: str, seconds: float | None) -> list[Move]:
    """`seconds` None: for ever."""
    return _insert(answer, after, Stall() if seconds is None else Pause(seconds))


def _between(answer: Answer, move: Callable[[int], Move]) -> list[Move]:
    events = answer.events()
    return [one for place, event in enumerate(events) for one in (move(place), event)]


def _keepalives(answer: Answer) -> list[Move]:
    return _between(answer, lambda _: {"type": "keepalive"})


def _unknown_events(answer: Answer) -> list[Move]:
    kinds = ("response.some_future.delta", "codex.response.metadata", "response.queued")
    return _between(answer, lambda place: {"type": kinds[place % 3], "delta": "?", "output_index": 7})


def _comments(answer: Answer) -> list[Move]:
    return _between(answer, lambda _: Raw(b": keepalive\n\n"))


def _comments_only(answer: Answer, count: int = 5, every_s: float = 0.05) -> list[Move]:
    """For a while nothing but comments."""
    pulse: list[Move] = [Pause(every_s), Raw(b": keepalive\n\n")]
    return _insert(answer, "created", *(pulse * count))


def _late_events(answer: Answer) -> list[Move]:
    """More of the same after the end: a delta, and a second terminal event that contradicts the first."""
    late = {"type": TEXT_DELTA, "output_index": 0, "content_index": 0, "delta": "too late"}
    return [*answer.events(), late, _failed_event(answer, "server_error", None, None)]


def _empty(answer: Answer, message: bool = False) -> list[Move]:
    """A success without output, or with an empty message item."""
    return [*answer.events([answer.writer.message("")] if message else [])]


def _completed_with_error(answer: Answer, code: str = "server_error") -> list[Move]:
    *events, _ = answer.events([])
    return [*events, terminal("response.completed", answer.response("completed", error=error_object(code)))]


def _failed_event(answer: Answer, code: str, message: str | None, status: int | None) -> Event:
    event = terminal(
        "response.failed", answer.response("failed", output=[], usage=None, error=error_object(code, message))
    )
    return event if status is None else {**event, "status": status}


def _failed(
    answer: Answer,
    code: str = "server_error",
    message: str | None = None,
    status: int | None = None,
    after: str = "created",
) -> list[Move]:
    return _break(answer, after, _failed_event(answer, code, message, status))


def _error_event(
    answer: Answer,
    code: str = "server_error",
    message: str | None = None,
    status: int | None = None,
    after: str = "nothing",
    flat: bool = False,
    headers: dict[str, str] | None = None,
) -> list[Move]:
    """An event of type `error`; `flat` puts code and message at its top level, else they are under `error`."""
    error = error_object(code, message) or {}
    event: Event = {"type": "error", **({**error, "param": None} if flat else {"error": error})}
    if status is not None:
        event["status"] = status
    if headers:
        event["headers"] = headers
    return _break(answer, after, event)


def _incomplete(
    answer: Answer,
    reason: str | None = "max_output_tokens",
    after: str = "text",
    event: str = "response.incomplete",
) -> list[Move]:
    """`event` may be response.completed: then only the status tells."""
    details = None if reason is None else {"reason": reason}
    return _break(answer, after, terminal(event, answer.response("incomplete", incomplete_details=details)))


def _refusal(answer: Answer, text: str = "I cannot help with that.") -> list[Move]:
    return [*answer.events([answer.writer.refusal(text)])]


def _rate_limits(answer: Answer, reached: bool = True, then_end: bool = False) -> list[Move]:
    """A quota snapshot in front. It is news, not a failure: the answer goes on, unless the stream ends right there."""
    percent = 100 if reached else 16
    window = {
        "used_percent": percent,
        "window_minutes": 300,
        "reset_after_seconds": 600,
        "reset_at": 1_900_000_000,
    }
    snapshot = {
        "type": "codex.rate_limits",
        "plan_type": "plus",
        "metered_limit_name": "codex",
        "rate_limits": {
            "allowed": not reached,
            "limit_reached": reached,
            "primary": window,
            "secondary": None,
        },
        "credits": {"has_credits": False, "unlimited": False, "balance": "0"},
    }
    return [snapshot] if then_end else [snapshot, *answer.events()]


def _tiny_writes(answer: Answer, size: int = 1) -> list[Move]:
    data = encode_events(number(answer.events()))
    return [Raw(data[start : start + size]) for start in range(0, len(data), size)]


def _crlf(answer: Answer) -> list[Move]:
    return [Raw(encode_events(number(answer.events())).replace(b"\n", b"\r\n"))]


def _bare_terminal(answer: Answer) -> list[Move]:
    """The final response repeats none of the items."""
    *events, _ = answer.events()
    return [*events, terminal("response.completed", answer.response("completed", output=[]))]


#: Faults of framing, timing and endings. Those that reshape items stand in a table of their own.
STREAM_FAULTS: dict[str, Fault] = {
    "cut_before_output": lambda answer, reset=False: _cut(answer, "created", reset),
    "cut_text": lambda answer, reset=False: _cut(answer, "text", reset),
    "cut_thinking": lambda answer, reset=False: _cut(answer, "thinking", reset),
    "cut_arguments": lambda answer, reset=False: _cut(answer, "call", reset),
    "cut_frame": _cut_frame,
    "cut_after_terminal": lambda answer, reset=False: [*answer.events(), Cut(reset)],
    "end_without_terminal": lambda answer: [*answer.events()[:-1]],
    "end_before_output": lambda answer: _break(answer, "created"),
    "malformed_json": _malformed_json,
    "invalid_utf8": _invalid_utf8,
    "huge_frame": _huge_frame,
    "silence_before_head": lambda answer, seconds=5.0: _silence(answer, "nothing", seconds),
    "silence_after_created": lambda answer, seconds=5.0: _silence(answer, "created", seconds),
    "silence_mid_text": lambda answer, seconds=5.0: _silence(answer, "text", seconds),
    "silence_mid_arguments": lambda answer, seconds=5.0: _silence(answer, "call", seconds),
    "keepalives": _keepalives,
    "unknown_events": _unknown_events,
    "comments": _comments,
    "comments_only": _comments_only,
    "late_events": _late_events,
    "done_sentinel": lambda answer: [*answer.events(), Raw(b"data: [DONE]\n\n")],
    "empty": _empty,
    "completed_with_error": _completed_with_error,
    "failed": _failed,
    "error_event": _error_event,
    "incomplete": _incomplete,
    "refusal": _refusal,
    "rate_limits": _rate_limits,
    "tiny_writes": _tiny_writes,
    "crlf": _crlf,
    "bare_terminal": _bare_terminal,
}


def without(events: list[Event], *kinds: str) -> list[Any]:
    """The events without those of the kinds."""
    return [event for event in events if event["type"] not in kinds]
