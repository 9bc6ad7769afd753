"""Faults while a call is open: the client has it run, which may take long."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.sandbox.p5.answer import AgentAnswer
from proxy.sandbox.p5.faults.places import AgentFault, break_off, insert, kind_of, prepared
from proxy.sandbox.p5.ledger import BLOB
from proxy.sandbox.play.actions import Action, Cut, Pause, Stall
from proxy.sandbox.wires.connect.errors import connect_error


def _abort(answer: AgentAnswer, seconds: float = 0.05) -> Iterator[Action]:
    """The server wants the result no more, and goes on without it."""
    for one in prepared(answer, "call").stream():
        yield one
        if isinstance(one, dict) and kind_of(one) == "call":
            yield Pause(seconds)
            yield {"type": "abort", "id": one["id"]}


def _stalled(answer: AgentAnswer) -> Iterator[Action]:
    """The result is taken, and then there are heartbeats only."""
    answer.stalls = True
    return prepared(answer, "call").stream()


def _busy(answer: AgentAnswer, deltas: int = 3, size: int = 10) -> Iterator[Action]:
    """While the call is open there is text, and everything is asked that a client answers by itself."""
    for one in prepared(answer, "call").stream():
        yield one
        if kind_of(one) == "call":
            for number in range(deltas):
                yield {"type": "text_delta", "text": f"{number} ".rjust(size)}
            blob = answer.number(BLOB)
            yield answer.blob(blob, "assistant", "kept")
            yield answer.settled(BLOB, blob)
            yield from answer.asks("context", number=0)
            yield from answer.asks("grep", pattern="x")
            yield from answer.query("web_search", "news")


def _turn_ends(answer: AgentAnswer, seconds: float = 0.0) -> Iterator[Action]:
    """The turn ends although the call is open."""
    yield from break_off(answer, "call", Pause(seconds))
    yield from answer.ending()


def _error(
    answer: AgentAnswer, code: str = "internal", message: str = "Error", seconds: float = 0.0
) -> Iterator[Action]:
    return break_off(answer, "call", Pause(seconds), {"type": "end", "error": connect_error(code, message)})


def _silence(answer: AgentAnswer, seconds: float | None = 5.0) -> Iterator[Action]:
    return insert(answer, "call", Stall() if seconds is None else Pause(seconds))


PAUSE_FAULTS: dict[str, AgentFault] = {
    "abort": _abort,
    "stalled_resume": _stalled,
    "busy_call": _busy,
    "turn_ends_in_call": _turn_ends,
    "silence_mid_call": _silence,
    "cut_call": lambda answer, seconds=0.0, reset=False: break_off(answer, "call", Pause(seconds), Cut(reset)),
    "end_call": lambda answer, seconds=0.0: break_off(answer, "call", Pause(seconds)),
    "error_call": _error,
}
