"""Checkers that tests of several folders share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

#: block type -> the delta types that it may have
BLOCK_DELTAS: dict[str, frozenset[str]] = {
    "text": frozenset({"text_delta", "citations_delta"}),
    "thinking": frozenset({"thinking_delta", "signature_delta"}),
    "redacted_thinking": frozenset(),
    "tool_use": frozenset({"input_json_delta"}),
    "server_tool_use": frozenset({"input_json_delta"}),
    "web_search_tool_result": frozenset(),
}
_DELTA_MEMBERS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}
_STOP_REASONS = frozenset(
    {
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    }
)
_COUNTERS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class IllegalStream(AssertionError):
    """The events are not a Messages stream; the message says which event and why."""


def check_message_stream(events: Iterable[Mapping[str, Any]], *, cut: bool = False) -> None:
    """The order of a Messages event stream. Raises IllegalStream.

    `message_start` first and once; indexes 0, 1, 2 … without a gap, one open block at a time, each with deltas of its
    own kind between its start and its stop, a thinking block with one signature at most, the arguments of a stopped
    tool block a JSON object or nothing; then `message_delta` with a reason, then `message_stop`. An `error` may end the
    stream instead, and of the blocks only a tool call may then be open. `ping` stands anywhere, and a `message_delta`
    without a reason where a keepalive may stand. Nothing follows the end.

    cut  the stream may stop anywhere a reader of a broken stream could see: no end is asked for
    """
    checker = _Checker()
    for number, event in enumerate(events):
        try:
            checker.look(event)
        except IllegalStream as error:
            raise IllegalStream(f"event {number}: {error}: {json.dumps(event)[:200]}") from None
    if not cut and not checker.ended:
        raise IllegalStream("the stream has no end")


class _Checker:
    def __init__(self) -> None:
        self.ended = False
        self._started = False
        self._reason: str | None = None
        self._next = 0
        self._open: Mapping[str, Any] | None = None
        self._arguments = ""
        self._signed = False

    def look(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        handler = getattr(self, f"_{kind}", None) if isinstance(kind, str) else None
        _refuse(handler is None, "unknown event type")
        _refuse(self.ended, "an event after the end")
        _refuse(not self._started and kind not in ("message_start", "ping", "error"), "before message_start")
        _refuse(self._reason is not None and kind not in ("message_stop", "ping", "error"), "after the stop reason")
        handler(event)

    def _ping(self, event: Mapping[str, Any]) -> None:
        _refuse(event != {"type": "ping"}, "a ping with members")

    def _error(self, event: Mapping[str, Any]) -> None:
        error = event.get("error")
        _refuse(not isinstance(error, Mapping), "an error without its object")
        for member in ("type", "message"):
            _refuse(not isinstance(error.get(member), str) or not error[member], f"an error without {member}")
        _refuse(self._open is not None and self._open["type"] != "tool_use", "an error inside an open block")
        self.ended = True

    def _message_start(self, event: Mapping[str, Any]) -> None:
        _refuse(self._started, "a second message_start")
        message = event["message"]
        _refuse(not isinstance(message.get("id"), str) or not message["id"], "no message id")
        _refuse(not isinstance(message.get("model"), str), "no model")
        fixed = {"type": "message", "role": "assistant", "content": [], "stop_reason": None, "stop_sequence": None}
        for member, value in fixed.items():
            _refuse(member not in message or message[member] != value, f"message.{member} is not {value!r}")
        _check_usage(message.get("usage"))
        self._started = True

    def _content_block_start(self, event: Mapping[str, Any]) -> None:
        _refuse(self._open is not None, "a block inside a block")
        _refuse(event.get("index") != self._next or isinstance(event.get("index"), bool), "a wrong index")
        block = event["content_block"]
        _refuse(block.get("type") not in BLOCK_DELTAS, "an unknown block type")
        if block["type"] in ("text", "thinking"):
            _refuse(block.get(block["type"]) != "", "content in the start of a block")
        if block["type"] in ("tool_use", "server_tool_use"):
            _refuse(block.get("input") != {}, "input in the start of a block")
            for member in ("id", "name"):
                _refuse(not isinstance(block.get(member), str) or not block[member], f"a call without {member}")
        self._open, self._arguments, self._signed = block, "", False

    def _content_block_delta(self, event: Mapping[str, Any]) -> None:
        _refuse(self._open is None or event.get("index") != self._next, "a delta outside of its block")
        delta, block = event["delta"], self._open or {}
        _refuse(delta.get("type") not in BLOCK_DELTAS[block["type"]], f"a wrong delta for a {block['type']} block")
        member = _DELTA_MEMBERS.get(delta["type"])
        _refuse(member is not None and not isinstance(delta.get(member), str), f"a delta without {member}")
        _refuse(self._signed, "something after the signature")
        self._signed = delta["type"] == "signature_delta"
        self._arguments += delta.get("partial_json", "")

    def _content_block_stop(self, event: Mapping[str, Any]) -> None:
        _refuse(self._open is None or event.get("index") != self._next, "a stop outside of its block")
        if self._arguments:
            try:
                arguments = json.loads(self._arguments)
            except ValueError:
                arguments = None
            _refuse(not isinstance(arguments, dict), "arguments that are not a JSON object")
        self._open = None
        self._next += 1

    def _message_delta(self, event: Mapping[str, Any]) -> None:
        reason = event["delta"].get("stop_reason")
        if reason is None:
            return
        _refuse(reason not in _STOP_REASONS, "an unknown stop reason")
        _refuse(self._open is not None, "a stop reason inside an open block")
        _refuse((reason == "stop_sequence") != (event["delta"].get("stop_sequence") is not None), "a wrong sequence")
        _check_usage(event.get("usage"))
        self._reason = reason

    def _message_stop(self, event: Mapping[str, Any]) -> None:
        _refuse(self._reason is None, "message_stop without a stop reason")
        self.ended = True


def _refuse(wrong: bool, why: str) -> None:
    if wrong:
        raise IllegalStream(why)


def _check_usage(usage: Any) -> None:
    _refuse(not isinstance(usage, Mapping), "no usage")
    for counter in _COUNTERS:
        value = usage.get(counter)
        _refuse(not isinstance(value, int) or isinstance(value, bool) or value < 0, f"usage.{counter}")
