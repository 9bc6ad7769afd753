"""The faults that only a stream of Responses events can have; framing and timing are those of every stream."""

from __future__ import annotations

from proxy.sandbox.play.actions import Action
from proxy.sandbox.play.stream_faults import STREAM_FAULTS, Fault, break_off
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.responses.answer import ResponsesAnswer
from proxy.sandbox.wires.responses.failures import error_object
from proxy.sandbox.wires.responses.item_faults import ITEM_FAULTS
from proxy.sandbox.wires.responses.stream import terminal


def _completed_with_error(answer: ResponsesAnswer, code: str = "server_error") -> list[Action]:
    *events, _ = answer.events([])
    return [*events, terminal("response.completed", answer.response("completed", error=error_object(code)))]


def _failed(
    answer: ResponsesAnswer,
    code: str = "server_error",
    message: str | None = None,
    status: int | None = None,
    after: str = "created",
) -> list[Action]:
    return break_off(answer, after, answer.failed(code, message, status))


def _error_event(
    answer: ResponsesAnswer,
    code: str = "server_error",
    message: str | None = None,
    status: int | None = None,
    after: str = "nothing",
    flat: bool = False,
    headers: dict[str, str] | None = None,
) -> list[Action]:
    """An event of type `error`; `flat` puts code and message at its top level, else they are under `error`."""
    error = error_object(code, message) or {}
    event: Event = {"type": "error", **({**error, "param": None} if flat else {"error": error})}
    if status is not None:
        event["status"] = status
    if headers:
        event["headers"] = headers
    return break_off(answer, after, event)


def _incomplete(
    answer: ResponsesAnswer,
    reason: str | None = "max_output_tokens",
    after: str = "text",
    event: str = "response.incomplete",
) -> list[Action]:
    """`event` may be response.completed: then only the status tells."""
    details = None if reason is None else {"reason": reason}
    return break_off(answer, after, terminal(event, answer.response("incomplete", incomplete_details=details)))


def _refusal(answer: ResponsesAnswer, text: str = "I cannot help with that.") -> list[Action]:
    return [*answer.events([answer.writer.refusal(text)])]


def _rate_limits(answer: ResponsesAnswer, reached: bool = True, then_end: bool = False) -> list[Action]:
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


def _bare_terminal(answer: ResponsesAnswer) -> list[Action]:
    """The final response repeats none of the items."""
    *events, _ = answer.events()
    return [*events, terminal("response.completed", answer.response("completed", output=[]))]


RESPONSES_FAULTS: dict[str, Fault] = {
    **STREAM_FAULTS,
    **ITEM_FAULTS,
    "completed_with_error": _completed_with_error,
    "failed": _failed,
    "error_event": _error_event,
    "incomplete": _incomplete,
    "refusal": _refusal,
    "rate_limits": _rate_limits,
    "bare_terminal": _bare_terminal,
}
