"""Events of the server in a run, as dicts with a `type`, and the bytes of each.

Scripts write the same dicts: `{"type": "text_delta", "text": "Hi"}`. Any of them may have `gzip`, and `split`: its
bytes go out in writes of that size. Besides the rows of MESSAGES there are `payload` (an envelope of the bytes in
`hex`), `several` (other `events` in one envelope, one after the other), `updates` (other updates as members of one),
`joined` (other events in one write), and `end` (with an `error` or any `body`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from proxy.sandbox.p5.execs import EXECS, QUERIES
from proxy.sandbox.play.actions import Framing
from proxy.sandbox.wires.connect.envelopes import end_of_stream, envelope
from proxy.sandbox.wires.connect.protobuf import write

Event = Mapping[str, Any]
Fields = dict[int, Any]


def _display(event: Event) -> Fields:
    """A record of a tool call for display; the shell's own record has its arguments."""
    call = {1: {1: {1: event.get("command", "ls")}}}
    return {1: event["call_id"], 2: call, 3: event.get("model_call_id")}


def _nested(event: Event) -> Fields:
    """A sub-agent's text."""
    return {1: event["call_id"], 2: {2: {1: {1: {1: event["text"]}}}}, 3: event.get("model_call_id")}


def _usage(event: Event) -> Fields:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return {number: event.get(name) for number, name in enumerate(names, 1)}


#: Update -> its number and fields.
UPDATES: dict[str, tuple[int, Callable[[Event], Fields]]] = {
    "text_delta": (1, lambda event: {1: event["text"] or None}),
    "tool_call_started": (2, _display),
    "tool_call_completed": (3, _display),
    "thinking_delta": (4, lambda event: {1: event["text"] or None, 2: event.get("style")}),
    "thinking_completed": (5, lambda event: {1: event.get("duration_ms")}),
    "user_message_appended": (6, lambda event: {1: {1: event["text"], 2: event.get("message_id")}}),
    "partial_tool_call": (7, lambda event: {1: event["call_id"], 2: {}, 3: event["text"]}),
    "token_delta": (8, lambda event: {1: event["tokens"] or None}),
    "summary": (9, lambda event: {1: event["text"]}),
    "summary_started": (10, lambda _: {}),
    "summary_completed": (11, lambda _: {}),
    "shell_output_delta": (12, lambda event: {1: {1: event["text"]}}),
    "heartbeat": (13, lambda _: {}),
    "turn_ended": (14, _usage),
    "tool_call_delta": (15, _nested),
    "step_started": (16, lambda event: {1: event.get("step_id")}),
    "step_completed": (17, lambda event: {1: event.get("step_id"), 2: event.get("duration_ms")}),
    "prompt_suggestion": (18, lambda event: {1: event["text"]}),
    "strange_update": (99, lambda event: {1: event["text"]}),
}


def _update(number: int, fields: Callable[[Event], Fields], event: Event) -> Fields:
    return {1: {number: fields(event)}}


def _members(event: Event) -> Iterable[tuple[int, Fields]]:
    number, fields = UPDATES[event["type"]]
    return [(number, fields(event))]


def _exec(event: Event) -> Fields:
    """An exec with `kind` and its arguments by name. `number` instead of a kind is an unknown arm, None no arm."""
    number, names = EXECS[event["kind"]] if "kind" in event else (event["number"], {})
    args = {place: _argument(name, event[name]) for name, place in names.items() if event.get(name) is not None}
    return {1: event.get("id") or None, **({number: args} if number else {}), 15: event.get("exec_id")}


def _argument(name: str, value: Any) -> Any:
    return bytes.fromhex(value) if name.endswith("_hex") else value


def _query(event: Event) -> Fields:
    number, args = QUERIES[event["kind"]]
    return {1: event["id"] or None, number: args(event)}


def _blob(event: Event, number: int) -> Fields:
    data = event.get("data")
    return {1: event.get("id") or None, number: {1: bytes.fromhex(event["blob_id"]), 2: data and bytes.fromhex(data)}}


#: Message -> its fields. Field 1 has an update.
MESSAGES: dict[str, Callable[[Event], Fields]] = {
    **{name: partial(_update, *row) for name, row in UPDATES.items()},
    "updates": lambda event: {1: {number: fields for one in event["events"] for number, fields in _members(one)}},
    "exec": lambda event: {2: _exec(event)},
    "checkpoint": lambda event: {3: {5: {1: event["used_tokens"], 2: event["max_tokens"]}}},
    "get_blob": lambda event: {4: _blob(event, 2)},
    "set_blob": lambda event: {4: _blob(event, 3)},
    "abort": lambda event: {5: {1: {1: event["id"] or None}}},
    "query": lambda event: {7: _query(event)},
    "strange_message": lambda event: {99: {1: event["text"]}},
}


#: Types that may want an answer, or withdraw a request.
ASKING = ("exec", "get_blob", "set_blob", "abort", "query", "payload", "several", "joined")


def payload_of(event: Event) -> bytes:
    """The message of one envelope. Raises KeyError for an unknown type or a missing member."""
    if event["type"] == "payload":
        return bytes.fromhex(event["hex"])
    if event["type"] in ("several", "joined"):
        return b"".join(map(payload_of, event["events"]))
    return write(MESSAGES[event["type"]](event))


def encode_event(event: Event) -> bytes:
    if event["type"] == "joined":
        return _encode(event["events"])
    compressed = bool(event.get("gzip"))
    if event["type"] == "end":
        error = event.get("error")
        body = event.get("body", {} if error is None else {"error": error})
        return end_of_stream(body, compressed=compressed)
    return envelope(payload_of(event), event.get("flags", 0), compressed=compressed)


def _encode(events: Iterable[Event]) -> bytes:
    return b"".join(map(encode_event, events))


ENVELOPES = Framing(_encode, lambda event: event["type"] in ("text_delta", "thinking_delta"))
