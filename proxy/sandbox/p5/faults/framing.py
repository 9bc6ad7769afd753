"""Faults of envelopes and their content: several members, unknown ones, records for display only."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from proxy.sandbox.p5.answer import AgentAnswer, AgentFault, break_off, edited, insert, is_event, kind_of, replaced
from proxy.sandbox.p5.asked import EXEC
from proxy.sandbox.p5.events import Event, encode_event
from proxy.sandbox.play.actions import Action, Cut, Raw
from proxy.sandbox.wires.connect.envelopes import END, GZIP, envelope
from proxy.sandbox.wires.connect.protobuf import write

#: Above the limits of a client: for a payload, and for an unpacked one.
HUGE_BYTES, BOMB_BYTES = 17 << 20, 65 << 20

_TEXT = {"type": "text_delta", "text": "x" * 40}


def _half(after: str = "text") -> tuple[str, Raw]:
    data = encode_event(_TEXT)
    return after, Raw(data[: len(data) // 2])


def _cut_frame(answer: AgentAnswer, after: str = "text", reset: bool = False) -> Iterator[Action]:
    """Ends the connection in the middle of an envelope."""
    return break_off(answer, *_half(after), Cut(reset))


def _text(data: bytes) -> bytes:
    """An update with these bytes as its text."""
    return envelope(write({1: {1: {1: data}}}))


def _bomb(size: int) -> bytes:
    """A payload of a few kilobytes that unpacks to this many bytes, packed piece by piece."""
    packer = zlib.compressobj(9, wbits=31)
    piece = bytes(1 << 20)
    return b"".join([packer.compress(piece) for _ in range(size >> 20)]) + packer.flush()


def _in_pairs(answer: AgentAnswer) -> Iterator[Action]:
    """Puts always two envelopes of text into one write of their own."""
    held: list[dict[str, object]] = []
    for one in answer.stream():
        if isinstance(one, dict) and is_event(one, "text_delta"):
            held.append(one)
            if len(held) < 2:
                continue
        if held:
            yield {"type": "joined", "events": held}
            held = []
        if not is_event(one, "text_delta"):
            yield one


def _trailer(answer: AgentAnswer, status: int = 0, message: str = "") -> Iterator[Action]:
    """The end in the form of grpc-web."""
    words = f"grpc-status: {status}\r\n" + (f"grpc-message: {message}\r\n" if message else "")
    return replaced(answer.stream(), "end", lambda _: Raw(envelope(words.encode(), 0x80)))


FRAMING_FAULTS: dict[str, AgentFault] = {
    "tiny_writes": lambda answer, size=1: edited(answer, split=size),
    "in_pairs": _in_pairs,
    "gzip": lambda answer: edited(answer, gzip=True),
    "gzip_end": lambda answer: replaced(answer.stream(), "end", lambda end: {**end, "gzip": True}),
    "grpc_trailer": _trailer,
    "cut_frame": _cut_frame,
    # the body ends well, but its last envelope does not
    "end_in_frame": lambda answer, after="text": break_off(answer, *_half(after)),
    "huge_length": lambda answer, after="text": break_off(answer, after, Raw(b"\x00\xff\xff\xff\xff")),
    "huge_frame": lambda answer, after="text", size=HUGE_BYTES: insert(answer, after, Raw(_text(b"x" * size))),
    "gzip_bomb": lambda answer, after="text", size=BOMB_BYTES: insert(answer, after, Raw(envelope(_bomb(size), GZIP))),
    "bad_gzip": lambda answer, after="text": insert(answer, after, Raw(envelope(b"no gzip", GZIP))),
    "bad_end": lambda answer: break_off(answer, "text", Raw(envelope(b"no gzip", GZIP | END))),
    "strange_flags": lambda answer, flags=0x40: insert(answer, "text", Raw(envelope(b"?", flags))),
    # a field that announces five bytes, in an envelope that ends before
    "malformed": lambda answer, after="text": insert(answer, after, Raw(envelope(b"\x0a\x05A"))),
    # an unknown field, with bytes in it that are not a message
    "malformed_inside": lambda answer: insert(answer, "text", Raw(envelope(write({99: b"\x0a\x7fno message"})))),
    "invalid_utf8": lambda answer, after="text": insert(answer, after, Raw(_text(b"\xff\xfe"))),
    "garbage": lambda answer, after="nothing": break_off(answer, after, Raw(b"<html>not an envelope</html>")),
    "huge_checkpoint": lambda answer, size=1 << 20: insert(answer, "created", Raw(_checkpoint(size))),
}


def _checkpoint(size: int) -> bytes:
    """A state of the conversation of that size, which clients need not read."""
    return envelope(write({3: {1: [bytes(1024) for _ in range(size >> 10)]}}))


#: Text of display records. It must not appear in an answer.
SHOWN = "shown-not-said"


def _text_and_end(answer: AgentAnswer) -> Iterator[Action]:
    """Puts the last text and the end of the turn into one update."""
    text = {"type": "text_delta", "text": " Together."}
    return replaced(answer.stream(), "turn_ended", lambda end: {"type": "updates", "events": [text, end]})


def _with_exec(answer: AgentAnswer, beside: Event, *, first: bool) -> Iterator[Action]:
    """An exec that cannot be run, with another event in its payload."""
    number = answer.number(EXEC)
    named = {"id": number, "exec_id": answer.ids.new("exec")}
    exec_ = {"type": "exec", "kind": "diagnostics", **named, "path": "/sandbox/file.txt"}
    events = [beside, exec_] if first else [exec_, beside]
    for one in answer.stream():
        yield one
        if kind_of(one) == "created":
            yield {"type": "several", "events": events}
            yield answer.settled(EXEC, number)


_BEAT = {"type": "heartbeat"}

_BESIDE: dict[str, tuple[Event, bool]] = {
    "exec_heartbeat": (_BEAT, False),
    "text_exec": ({"type": "text_delta", "text": "First. "}, True),
    "exec_text": ({"type": "text_delta", "text": "Then. "}, False),
}


def _several(answer: AgentAnswer, which: str = "text_end") -> Iterator[Action]:
    """`which`: text_end, or exec_heartbeat, text_exec, exec_text, in that order in one payload."""
    if which == "text_end":
        return _text_and_end(answer)
    beside, first = _BESIDE[which]
    return _with_exec(answer, beside, first=first)


#: Records for display, hints and unknown members, which are not part of the answer.
_DISPLAYED: tuple[Event, ...] = (
    {"type": "user_message_appended", "text": SHOWN, "message_id": "m"},
    {"type": "tool_call_started", "call_id": SHOWN, "command": SHOWN, "model_call_id": SHOWN},
    {"type": "partial_tool_call", "call_id": SHOWN, "text": SHOWN},
    {"type": "tool_call_delta", "call_id": SHOWN, "text": SHOWN},
    {"type": "shell_output_delta", "text": SHOWN},
    {"type": "tool_call_completed", "call_id": SHOWN, "command": SHOWN, "model_call_id": SHOWN},
    {"type": "summary_started"},
    {"type": "summary", "text": SHOWN},
    {"type": "summary_completed"},
    {"type": "prompt_suggestion", "text": SHOWN},
)

_STRANGE: tuple[Event, ...] = (
    {"type": "strange_update", "text": SHOWN},
    {"type": "strange_message", "text": SHOWN},
    {"type": "payload", "hex": ""},
)


def _between(answer: AgentAnswer, *events: Event) -> Iterator[Action]:
    """Puts one of these before each delta of text, in turn."""
    count = 0
    for one in answer.stream():
        if kind_of(one) == "text":
            yield dict(events[count % len(events)])
            count += 1
        yield one


MEMBER_FAULTS: dict[str, AgentFault] = {
    "several_members": _several,
    "display_records": lambda answer: _between(answer, *_DISPLAYED),
    "unknown_events": lambda answer: _between(answer, *_STRANGE),
    "keepalives": lambda answer: _between(answer, _BEAT),
    # the model thinks again after its first text
    "thoughts_between": lambda answer: insert(
        answer, "text", {"type": "thinking_delta", "text": "Wait."}, {"type": "thinking_completed"}
    ),
    "empty_deltas": lambda answer: _between(
        answer, {"type": "text_delta", "text": ""}, {"type": "thinking_delta", "text": ""}
    ),
}
