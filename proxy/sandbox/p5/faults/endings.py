"""Faults of an answer's beginning, course and end: silence, cuts, missing or late parts, errors, open calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from proxy.sandbox.model.reply import Say
from proxy.sandbox.p5.answer import (
    NEVER,
    AgentAnswer,
    AgentFault,
    break_off,
    insert,
    is_event,
    kind_of,
    prepared,
    replaced,
    without,
)
from proxy.sandbox.p5.asked import BLOB
from proxy.sandbox.p5.failures import debug
from proxy.sandbox.play.actions import Action, Cut, Pause, Raw, silence
from proxy.sandbox.wires.connect.envelopes import connect_error, end_of_stream


def _pause_first(answer: AgentAnswer | None, seconds: float = 5.0) -> Iterator[Action]:
    return chain([Pause(seconds)], () if answer is None else answer.stream())


OPENING_FAULTS: dict[str, AgentFault] = {
    "silence_before_head": _pause_first,
    "cut_before_head": lambda answer, reset=False: [Cut(reset)],  # noqa: ARG005
}


_TEXT = {"type": "text_delta", "text": "too late"}


def end_error(
    answer: AgentAnswer,
    code: str | None = "internal",
    message: str | None = "Error",
    error: str | None = None,
    title: str | None = None,
    detail: str | None = None,
    chat_message: str | None = None,
    after: str = "created",
    gzip: bool = False,
) -> Iterator[Action]:
    """Ends the stream with this error; None leaves a member out. `error` is one of the vendor's names."""
    explained = any(one is not None for one in (error, title, detail, chat_message))
    details = debug(error, title, detail=detail, chat_message=chat_message) if explained else None
    body = connect_error(code, message, details)
    return break_off(answer, after, {"type": "end", "error": body, "gzip": gzip})


def _held_open(answer: AgentAnswer, seconds: float | None = None) -> Iterator[Action]:
    """Sends the end, and keeps the body open after it."""
    yield from answer.stream()
    yield silence(seconds)


def _turn_held_open(answer: AgentAnswer, seconds: float | None = None) -> Iterator[Action]:
    """Ends the turn and goes on with heartbeats; with `seconds` the stream ends after them."""
    for one in answer.stream():
        if is_event(one, "end"):
            yield NEVER if seconds is None else Pause(seconds)
        yield one


def _no_usage(answer: AgentAnswer, tokens: bool = True) -> Iterator[Action]:
    """Ends the turn without counters; `tokens` False: the earlier token counts are missing too."""
    stream = answer.stream() if tokens else without(answer, "token_delta")
    return replaced(stream, "turn_ended", lambda _: {"type": "turn_ended"})


def _late(answer: AgentAnswer, error: bool = False) -> Iterator[Action]:
    """Sends more text after the end, or an error that contradicts it."""
    yield from answer.stream()
    yield _TEXT
    if error:
        yield Raw(end_of_stream({"error": {"code": "internal", "message": "late"}}))


def _text_after_turn(answer: AgentAnswer) -> Iterator[Action]:
    for one in answer.stream():
        yield one
        if is_event(one, "turn_ended"):
            yield _TEXT


def _parked(answer: AgentAnswer, plain: bool = False) -> Iterator[Action]:
    """Puts the model's output into a blob; `plain`: as a text, not as a list of blocks."""
    answer.parked, answer.parked_plain = True, plain
    return answer.stream()


def _say(answer: AgentAnswer, text: str = "", size: int = 12, then: bool = False) -> Iterator[Action]:
    """The model says only this, in pieces of that size; `then`: and continues as usual."""
    answer.first.append(Say(text))
    answer.piece = size
    if not then:
        answer.speechless = True
    return answer.stream()


ENDING_FAULTS: dict[str, AgentFault] = {
    "cut_before_output": lambda answer, reset=False: break_off(answer, "created", Cut(reset)),
    "cut_thinking": lambda answer, reset=False: break_off(answer, "thinking", Cut(reset)),
    "cut_text": lambda answer, reset=False: break_off(answer, "text", Cut(reset)),
    "cut_after_terminal": lambda answer, reset=False: chain(answer.stream(), [Cut(reset)]),
    "end_before_output": lambda answer: break_off(answer, "created"),
    "end_without_terminal": lambda answer, after="text": break_off(answer, after),
    "silence_after_created": lambda answer, seconds=5.0: insert(answer, "created", silence(seconds)),
    "silence_mid_text": lambda answer, seconds=5.0: insert(answer, "text", silence(seconds)),
    "heartbeat_only": lambda answer, after="created": break_off(answer, after, NEVER),
    "no_turn_ended": lambda answer: without(answer, "turn_ended"),
    "no_end": lambda answer: without(answer, "end"),
    "no_usage": _no_usage,
    "held_open": _held_open,
    "turn_held_open": _turn_held_open,
    "late_events": _late,
    "text_after_turn": _text_after_turn,
    "empty": lambda answer, thoughts=False: without(
        prepared(answer, "thinking" if thoughts else "nothing"), "text_delta", "token_delta"
    ),
    "parked": _parked,
    "say": _say,
    "end_error": end_error,
    # then a payload unchanged: perhaps empty, perhaps not JSON
    "end_body": lambda answer, body="": replaced(
        without(answer, "turn_ended"), "end", lambda _: {"type": "end", "body": body}
    ),
}


def _abort(answer: AgentAnswer, seconds: float = 0.05) -> Iterator[Action]:
    """Withdraws the request for a result, and continues without it."""
    for one in prepared(answer, "call").stream():
        yield one
        if isinstance(one, dict) and kind_of(one) == "call":
            yield Pause(seconds)
            yield {"type": "abort", "id": one["id"]}


def _stalled(answer: AgentAnswer) -> Iterator[Action]:
    """Accepts the result, and then sends heartbeats only."""
    answer.stalls = True
    return prepared(answer, "call").stream()


def _busy(answer: AgentAnswer, deltas: int = 3, size: int = 10) -> Iterator[Action]:
    """Sends text while the call is open, and every request that a client answers by itself."""
    for one in prepared(answer, "call").stream():
        yield one
        if kind_of(one) == "call":
            for number in range(deltas):
                yield {"type": "text_delta", "text": f"{number} ".rjust(size)}
            blob = answer.number(BLOB)
            yield answer.blob(blob, "assistant", "kept")
            yield answer.settled(BLOB, blob)
            yield from answer.asks("context", number=0)
            yield from answer.asks("diagnostics", path="/sandbox/file.txt")
            yield from answer.query("web_search", "news")


def _turn_ends(answer: AgentAnswer, seconds: float = 0.0) -> Iterator[Action]:
    """Ends the turn although the call is open."""
    yield from break_off(answer, "call", Pause(seconds))
    yield from answer.ending()


def _error(
    answer: AgentAnswer, code: str = "internal", message: str = "Error", seconds: float = 0.0
) -> Iterator[Action]:
    return break_off(answer, "call", Pause(seconds), {"type": "end", "error": connect_error(code, message)})


PAUSE_FAULTS: dict[str, AgentFault] = {
    "abort": _abort,
    "stalled_resume": _stalled,
    "busy_call": _busy,
    "turn_ends_in_call": _turn_ends,
    "silence_mid_call": lambda answer, seconds=5.0: insert(answer, "call", silence(seconds)),
    "cut_call": lambda answer, seconds=0.0, reset=False: break_off(answer, "call", Pause(seconds), Cut(reset)),
    "end_call": lambda answer, seconds=0.0: break_off(answer, "call", Pause(seconds)),
    "error_call": _error,
}
