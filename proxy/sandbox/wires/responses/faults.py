"""Faults of Responses event streams only; framing and timing are those of every stream."""

from __future__ import annotations

from typing import Any

from proxy.sandbox.model.reply import Call, Tool
from proxy.sandbox.play.actions import Action, Stall
from proxy.sandbox.play.stream_faults import STREAM_FAULTS, Fault, break_off, edited, without
from proxy.sandbox.wires.answer import Block, Event
from proxy.sandbox.wires.responses.answer import (
    ARGUMENTS_DELTA,
    TEXT_DELTA,
    THINKING_DELTA,
    ResponsesAnswer,
    error_object,
)
from proxy.sandbox.wires.responses.quota import Quota

_ARGUMENTS_DONE = "response.function_call_arguments.done"
_TEXT_DONE = "response.output_text.done"
_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"


def _less(answer: ResponsesAnswer, *kinds: str) -> list[Action]:
    """The stream without the events of these types."""
    return without(answer.stream(), lambda event: event["type"] in kinds)


def _call_without(answer: ResponsesAnswer, *kinds: str) -> list[Action]:
    answer.add_calls()
    return _less(answer, *kinds)


def _no_deltas(answer: ResponsesAnswer, whole: str = "done") -> list[Action]:
    """Sends text only whole: in `output_text.done` (and the item), or with `whole` "item" in the item alone."""
    less = () if whole == "done" else (_TEXT_DONE,)
    return _less(answer, TEXT_DELTA, THINKING_DELTA, ARGUMENTS_DELTA, *less)


def _read(answer: ResponsesAnswer, **arguments: Any) -> ResponsesAnswer:
    """The answer with one call of Read, with these arguments besides a file path."""
    path = {"file_path": "/tmp/example.txt"}  # noqa: S108 - a name only, nothing is opened
    answer.blocks = [block for block in answer.blocks if block["type"] != answer.call_type]
    answer.say([Call(Tool("Read"), {**path, **arguments})])
    return answer


def _read_spaces(answer: ResponsesAnswer, spaces: int = 1024, closed: bool = True, stall: bool = False) -> list[Action]:
    """The model adds endless blanks before the closing brace, or (`closed` false) instead of it."""
    call = _read(answer, pages="").calls[0]
    text = call["arguments"][:-1] + " " * spaces
    call["arguments"] = text + ("}" if closed else "")
    kept = _less(answer, ARGUMENTS_DELTA)
    start = next(place for place, one in enumerate(kept) if isinstance(one, dict) and one["type"] == _ARGUMENTS_DONE)
    where = {"type": ARGUMENTS_DELTA, "item_id": call["id"], "output_index": answer.call_places[0]}
    if stall:
        return [*kept[:start], {**where, "delta": text}, Stall()]
    pieces = (text, "}") if closed else (text,)
    return [*kept[:start], *({**where, "delta": piece} for piece in pieces), *kept[start:]]


def _encrypted(answer: ResponsesAnswer, added: str | None, done: str | None) -> list[Action]:
    """Sets where the encrypted content of reasoning appears, and with which nonce (None: nowhere)."""
    nonces = {_ADDED: added, _DONE: done}

    def edit(event: Event) -> None:
        item = event.get("item", {})
        if item.get("type") == answer.thought_type:
            event["item"] = {name: value for name, value in item.items() if name != "encrypted_content"}
            nonce = nonces[event["type"]]
            if nonce is not None:
                event["item"]["encrypted_content"] = answer.writer.encrypt(item["id"], nonce)

    answer.add_thought()
    return edited(answer.stream(), edit)


def _incomplete(
    answer: ResponsesAnswer, reason: str | None = "max_output_tokens", after: str = "text", event: str | None = None
) -> list[Action]:
    """Ends the answer as incomplete. `event` may be response.completed: then only the status shows it."""
    details = None if reason is None else {"reason": reason}
    sent = break_off(answer, after)
    return [*sent, answer.terminal("incomplete", event, output=_output_of(sent), incomplete_details=details)]


def _output_of(actions: list[Action]) -> list[Block]:
    """The output whose events were sent."""
    output: dict[int, Block] = {}
    for event in actions:
        if not isinstance(event, dict):
            continue
        place = event.get("output_index", -1)
        if event["type"] == _ADDED:
            output[place] = {**event["item"], "status": "incomplete"}
        elif event["type"] == _DONE:
            output[place] = event["item"]
        elif event["type"] == ARGUMENTS_DELTA:
            output[place]["arguments"] += event["delta"]
        elif event["type"] == TEXT_DELTA:
            said = "".join(part["text"] for part in output[place]["content"]) + event["delta"]
            output[place]["content"] = [{"type": "output_text", "text": said, "annotations": []}]
    return list(output.values())


def _blocks(answer: ResponsesAnswer, *blocks: Block) -> ResponsesAnswer:
    """The answer with this output instead of its own."""
    answer.blocks = list(blocks)
    return answer


def _error_event(
    answer: ResponsesAnswer,
    code: str | int = "server_error",
    message: str | None = None,
    status: int | None = None,
    after: str = "nothing",
    flat: bool = False,
    headers: dict[str, str] | None = None,
    kind: str | None = None,
) -> list[Action]:
    """An event of type `error`; `flat` puts code and message at its top level, else they are under `error`. `kind` is
    the error's type when its code is at most a number."""
    error: dict[str, Any] = error_object(code, message) or {}
    if kind:
        error = {"type": kind, "message": message or "boom", "code": code if isinstance(code, int) else None}
    event: Event = {"type": "error", **({**error, "param": None} if flat else {"error": error})}
    if status is not None:
        event["status"] = status
    if headers:
        event["headers"] = headers
    return break_off(answer, after, event)


def rate_limits(answer: ResponsesAnswer, reached: bool = True, then_end: bool = False) -> list[Action]:
    """Sends a quota snapshot first. It is no failure: the answer goes on, unless the stream ends right there."""
    quota = Quota({"primary": (100 if reached else 16, 300)})
    snapshot = quota.event(1_900_000_000 - quota.reset_after_s)
    return [snapshot] if then_end else [snapshot, *answer.stream()]


RESPONSES_FAULTS: dict[str, Fault] = {
    **STREAM_FAULTS,
    # no deltas of arguments: they come whole, in two places, or only in the finished item
    "arguments_in_done": lambda answer: _call_without(answer, ARGUMENTS_DELTA),
    "arguments_in_item": lambda answer: _call_without(answer, ARGUMENTS_DELTA, _ARGUMENTS_DONE),
    "no_deltas": _no_deltas,
    "read_pages_empty": lambda answer: _read(answer, pages="").stream(),
    "read_huge_offset": lambda answer, offset=1_300_000: _read(answer, offset=offset, limit=20).stream(),
    "read_spaces": _read_spaces,
    "sealed_only_added": lambda answer: _encrypted(answer, "early", None),
    "sealed_only_done": lambda answer: _encrypted(answer, None, "late"),
    "sealed_differs": lambda answer: _encrypted(answer, "early", "late"),
    "completed_with_error": lambda answer, code="server_error": [
        *_blocks(answer).beginning(),
        answer.terminal("completed", error=error_object(code)),
    ],
    "failed": lambda answer, code="server_error", message=None, status=None, after="created": break_off(
        answer, after, answer.failure(code, message, status)
    ),
    "error_event": _error_event,
    "incomplete": _incomplete,
    "refusal": lambda answer, text="I cannot help with that.": _blocks(answer, answer.writer.refusal(text)).stream(),
    "rate_limits": rate_limits,
    # the final response repeats none of the items
    "bare_terminal": lambda answer: [*answer.stream()[:-1], answer.terminal("completed", output=[])],
}
