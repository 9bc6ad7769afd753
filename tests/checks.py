"""Checkers that tests of several folders share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from events import MEMBERS

#: block type -> the delta types that it may have
BLOCK_DELTAS: dict[str, frozenset[str]] = {
    "text": frozenset({"text_delta", "citations_delta"}),
    "thinking": frozenset({"thinking_delta", "signature_delta"}),
    "redacted_thinking": frozenset(),
    "tool_use": frozenset({"input_json_delta"}),
    "server_tool_use": frozenset({"input_json_delta"}),
    "web_search_tool_result": frozenset(),
    "x_search_tool_result": frozenset(),
}
_STOP_REASONS = (
    *("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
    "model_context_window_exceeded",
)
#: Those that may end an answer inside a call.
_LIMITS = ("max_tokens", "model_context_window_exceeded")
_COUNTERS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class IllegalStream(AssertionError):
    """The events are not a Messages stream; the message says which event and why."""


def check_message_stream(events: Iterable[Mapping[str, Any]], *, cut: bool = False, hub: bool = False) -> None:
    """The order of a Messages event stream. Raises IllegalStream.

    `message_start` first and once; indexes 0, 1, 2 … without a gap, one open block at a time, each with deltas of its
    own kind between its start and its stop, a thinking block with one signature at most, the arguments of a stopped
    tool block JSON or nothing, or for the last one the beginning of it, when the token limit is the reason; then
    `message_delta` with a reason, then `message_stop`. An `error` may end the stream instead, and of the blocks only a
    tool call may then be open. `ping` stands anywhere, and a `message_delta` without a reason where a keepalive may
    stand. Nothing follows the end.

    cut  the stream may stop anywhere a reader of a broken stream could see: no end is asked for
    hub  a call that the token limit cut is still open at the end: the Messages route stops it
    """
    checker = _Checker(hub=hub)
    for number, event in enumerate(events):
        located(number, event, checker.look)
    if not cut and not checker.ended:
        raise IllegalStream("the stream has no end")


def located(number: int, value: Mapping[str, Any], look: Callable[[Mapping[str, Any]], None]) -> None:
    try:
        look(value)
    except (IllegalStream, KeyError, TypeError, AttributeError, IndexError) as error:
        raise IllegalStream(f"number {number}: {error!r}: {json.dumps(value)[:300]}") from None


class _Checker:
    def __init__(self, *, hub: bool) -> None:
        self._hub = hub
        self.ended = False
        self._started = False
        self._reason: str | None = None
        self._next = 0
        self._open: Mapping[str, Any] | None = None
        self._arguments = ""
        self._signed = False
        self._cut = False

    def look(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        handler = getattr(self, f"_{kind}", None) if isinstance(kind, str) else None
        refuse(handler is None, "unknown event type")
        refuse(self.ended, "an event after the end")
        refuse(not self._started and kind not in ("message_start", "ping", "error"), "before message_start")
        refuse(self._reason is not None and kind not in ("message_stop", "ping", "error"), "after the stop reason")
        handler(event)

    def _ping(self, event: Mapping[str, Any]) -> None:
        refuse(event != {"type": "ping"}, "a ping with members")

    def _error(self, event: Mapping[str, Any]) -> None:
        error = event.get("error")
        refuse(not isinstance(error, Mapping), "an error without its object")
        for member in ("type", "message"):
            refuse(not isinstance(error.get(member), str) or not error[member], f"an error without {member}")
        refuse(self._open is not None and self._open["type"] != "tool_use", "an error inside an open block")
        refuse(self._cut, "an error behind a closed call with half of its arguments")
        self.ended = True

    def _message_start(self, event: Mapping[str, Any]) -> None:
        refuse(self._started, "a second message_start")
        message = event["message"]
        refuse(not isinstance(message.get("id"), str) or not message["id"], "no message id")
        refuse(not isinstance(message.get("model"), str), "no model")
        fixed = {"type": "message", "role": "assistant", "content": [], "stop_reason": None, "stop_sequence": None}
        for member, value in fixed.items():
            refuse(member not in message or message[member] != value, f"message.{member} is not {value!r}")
        _check_usage(message.get("usage"))
        self._started = True

    def _content_block_start(self, event: Mapping[str, Any]) -> None:
        refuse(self._open is not None, "a block inside a block")
        refuse(self._cut, "a block behind a call with half of its arguments")
        refuse(event.get("index") != self._next or isinstance(event.get("index"), bool), "a wrong index")
        block = event["content_block"]
        refuse(block.get("type") not in BLOCK_DELTAS, "an unknown block type")
        if block["type"] in ("text", "thinking"):
            refuse(block.get(block["type"]) != "", "content in the start of a block")
        if block["type"] in ("tool_use", "server_tool_use"):
            refuse(block.get("input") != {}, "input in the start of a block")
            for member in ("id", "name"):
                refuse(not isinstance(block.get(member), str) or not block[member], f"a call without {member}")
        self._open, self._arguments, self._signed = block, "", False

    def _content_block_delta(self, event: Mapping[str, Any]) -> None:
        refuse(self._open is None or event.get("index") != self._next, "a delta outside of its block")
        delta, block = event["delta"], self._open or {}
        refuse(delta.get("type") not in BLOCK_DELTAS[block["type"]], f"a wrong delta for a {block['type']} block")
        member = MEMBERS.get(delta["type"])
        refuse(member is not None and not isinstance(delta.get(member), str), f"a delta without {member}")
        refuse(self._signed, "something after the signature")
        self._signed = delta["type"] == "signature_delta"
        self._arguments += delta.get("partial_json", "")

    def _content_block_stop(self, event: Mapping[str, Any]) -> None:
        refuse(self._open is None or event.get("index") != self._next, "a stop outside of its block")
        self._cut = bool(self._arguments.strip()) and not is_json(self._arguments)
        self._open = None
        self._next += 1

    def _message_delta(self, event: Mapping[str, Any]) -> None:
        reason = event["delta"].get("stop_reason")
        if reason is None:
            return
        refuse(reason not in _STOP_REASONS, "an unknown stop reason")
        may_be_open = self._hub and reason in _LIMITS and self._open is not None
        refuse(self._open is not None and not (may_be_open and self._open["type"] == "tool_use"), "in an open block")
        refuse(self._cut and reason not in _LIMITS, "arguments that are not JSON")
        refuse((reason == "stop_sequence") != (event["delta"].get("stop_sequence") is not None), "a wrong sequence")
        _check_usage(event.get("usage"), told=("output_tokens",))
        self._reason = reason

    def _message_stop(self, event: Mapping[str, Any]) -> None:
        refuse(self._reason is None, "message_stop without a stop reason")
        self.ended = True


def refuse(wrong: bool, why: str) -> None:
    if wrong:
        raise IllegalStream(why)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _check_usage(usage: Any, told: Iterable[str] = _COUNTERS) -> None:
    """`told`: the counters that must be there. What the end does not tell stays as the start said."""
    refuse(not isinstance(usage, Mapping), "no usage")
    for counter in {*told, *(name for name in _COUNTERS if name in usage)}:
        value = usage.get(counter)
        refuse(not isinstance(value, int) or isinstance(value, bool) or value < 0, f"usage.{counter}")
