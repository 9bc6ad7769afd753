"""Where an answer of an upstream can be damaged: the classes of its bytes, found in the bytes of a good one."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

#: wire -> how its last event and the event with the reason of the end begin or look; the same where there is but one
_LAST = {"responses": b'"type":"response.completed"', "chat": b"data: [DONE]", "messages": b'"type":"message_stop"'}
_REASON = {
    "responses": b'"type":"response.completed"',
    "chat": re.compile(rb'"finish_reason":"'),
    "messages": b'"type":"message_delta"',
}


#: Classes of what HTTP puts around any stream.
HTTP_PLACES = ("status line", "header", "chunk size", "behind a chunk size", "behind a chunk")


@dataclass(frozen=True)
class Chunk:
    """`size` and `data` are where its length line and its data begin, `end` where the data ends."""

    size: int
    data: int
    end: int


class Body:
    """The body of an answer with chunks, and where each of its bytes stands in the answer."""

    def __init__(self, tape: bytes) -> None:
        self.tape = tape
        self.start = tape.index(b"\r\n\r\n") + 4
        self.chunks = list(_chunks(tape, self.start))
        self.payload = b"".join(tape[one.data : one.end] for one in self.chunks)
        self._starts = [0]
        for one in self.chunks:
            self._starts.append(self._starts[-1] + one.end - one.data)

    def at(self, offset: int) -> int:
        """The place in the answer of an offset in the body."""
        number = min(bisect_right(self._starts, offset) - 1, len(self.chunks) - 1)
        return self.chunks[number].data + offset - self._starts[number]


def _chunks(tape: bytes, at: int) -> Iterator[Chunk]:
    while True:
        line = tape.index(b"\r\n", at)
        size = int(tape[at:line], 16)
        if not size:
            return
        yield Chunk(at, line + 2, line + 2 + size)
        at = line + 2 + size + 2


@dataclass(frozen=True)
class Places:
    """
    classes   name -> offset in the answer
    complete  from where on the upstream has said that it is done
    others    damages of this kind of answer alone: name -> (offset, what is said there, damage)
    """

    classes: dict[str, int]
    complete: int
    others: dict[str, tuple[int, bytes, str]] = field(default_factory=dict)


def places(tape: bytes, kind: str) -> Places:
    """Of a stream of server-sent events; `kind` is its wire."""
    body = Body(tape)
    payload = body.payload
    frames = [found.end() for found in re.finditer(rb"\r?\n\r?\n", payload)]
    spoken = payload.rfind(b'"reasoning_content"')  # behind the thoughts
    middle = min(at for at in (payload.find(what, spoken + 1) for what in (b"\xc3", b"lsa")) if at > 0)
    frame_end = next(end for end in frames if end > middle)
    last = _found(payload, _LAST[kind])
    reason = _found(payload, _REASON[kind])
    reason_end = next(end for end in frames if end > reason)
    last_end = next((end for end in frames if end > last), len(payload))
    chunk = next(one for one in body.chunks if one.data > body.at(middle) - 4 and one.size > body.start)
    found = {
        "status line": 7,
        "header": body.start // 2,
        "behind the head": body.start,
        "chunk size": chunk.size + 1,
        "behind a chunk size": chunk.data - 1,
        "behind a chunk": chunk.end + 1,
        "in a frame": body.at(middle) - 3,
        "between frames": body.at(frame_end),
        "in the terminal frame": body.at(last) + 6,
        "in front of the terminal frame": body.at(payload.rindex(b"\n\n", 0, last) + 2),
        "behind the terminal frame": body.at(last_end - 1) + 1,
        "last chunk": len(tape) - 3,
    }
    optional = {
        "in a character": re.compile(rb"\xf0\x9f").search(payload, middle),
        "in an escape": re.compile(rb'\\(?=\\*"q)').search(payload, middle),
        "in arguments": re.compile(rb"lsa").search(payload, middle),
    }
    found |= {name: body.at(match.start() + 1) for name, match in optional.items() if match}
    if kind != "responses":
        found["behind the reason"] = body.at(reason_end - 1) + 1
    between = next(one for one in body.chunks if one.data > body.at(middle) and tape[one.end - 2 : one.end] == b"\n\n")
    others = {
        f"an event that is {name}": (between.end + 2, b"%x\r\ndata: %s\n\n\r\n" % (len(data) + 8, data), "insert")
        for name, data in (("a number", b"5"), ("a list", b"[]"), ("a half", b'{"a":'))
    }
    return Places(found, body.at(len(payload[:reason_end].rstrip())), others)


def _found(payload: bytes, pattern: bytes | re.Pattern[bytes]) -> int:
    if isinstance(pattern, bytes):
        return payload.rindex(pattern)
    return [match.start() for match in pattern.finditer(payload)][-1]


def envelope_places(tape: bytes) -> Places:
    """Of the stream of a run: envelopes, of which the last but one ends the turn and the last one the stream."""
    body = Body(tape)
    starts = [0]
    while starts[-1] < len(body.payload):
        starts.append(starts[-1] + 5 + int.from_bytes(body.payload[starts[-1] + 1 : starts[-1] + 5], "big"))
    *_, turn, trailer, end = starts
    stored, character = body.payload.index(b"\xc3"), body.payload.rindex(b"\xc3")
    middle = max(start for start in starts if start < character)
    after = min(start for start in starts if start > character)
    chunk = next(one for one in body.chunks if one.data >= body.at(after))
    found = {
        "status line": 7,
        "header": body.start // 2,
        "behind the head": body.start,
        "chunk size": chunk.size + 1,
        "behind a chunk size": chunk.data - 1,
        "behind a chunk": chunk.end + 1,
        "in front of an envelope": body.at(middle),
        "in what is stored": body.at(stored),
        "in a length": body.at(middle + 3),
        "behind a length": body.at(middle + 5),
        "in a message": body.at(middle + 7),
        "in a character": body.at(character + 1),
        "between envelopes": body.at(after),
        "in front of the end of the turn": body.at(turn),
        "in the end of the turn": body.at(turn + 6),
        "in front of the trailer": body.at(trailer),
        "in the length of the trailer": body.at(trailer + 3),
        "in the trailer": body.at(trailer + 6) if end > trailer + 6 else body.at(trailer + 5),
        "behind the trailer": body.at(end - 1) + 1,
        "last chunk": len(tape) - 3,
    }
    others = {
        "flag of packing": (body.at(middle), b"\x01", "garble"),
        "unknown flag": (body.at(middle), b"\x40", "garble"),
        "flag of the end": (body.at(middle), b"\x02", "garble"),
        "length of 4 GiB": (body.at(middle + 1), b"\xff\xff\xff\xff", "garble"),
        "length too short": (body.at(middle + 4), b"\x03", "garble"),
        "end of the turn packed": (body.at(turn), b"\x01", "garble"),
        "trailer packed": (body.at(trailer), b"\x03", "garble"),
    }
    return Places(found, body.at(trailer - 1) + 1, others)


def whole_places(tape: bytes) -> Places:
    """Of a body in JSON that has a length."""
    start = tape.index(b"\r\n\r\n") + 4
    size = len(tape) - start
    found = {
        "status line": 7,
        "header": start // 2,
        "behind the head": start,
        "in the first name": start + 3,
        "in the middle": start + size // 2,
        "in front of the last byte": len(tape) - 1,
        "behind the body": len(tape),
    }
    return Places(found, len(tape))


def socket_places(tape: bytes) -> tuple[bytes, Places]:
    """The events of a stream as frames of a WebSocket, one of them in two fragments, and the classes of their bytes."""
    events = [found[1] for found in re.finditer(rb"data: ?([^\n]+)\n", Body(tape).payload)]
    last = next(at for at, event in enumerate(events) if _LAST["responses"] in event)
    spoken = next(at for at, event in enumerate(events) if b"\xc3" in event)
    front = b"".join(_frame(event) for event in events[: spoken + 1])
    split = events[spoken + 1]
    first, second = _frame(split[:20], 0x01), _frame(split[20:], 0x80)
    middle = b"".join(_frame(event) for event in events[spoken + 2 : last])
    whole = front + first + second + middle + _frame(events[last])
    at = len(front)
    classes = {
        "in front of all": 0,
        "between frames": at,
        "in a frame header": at + 1,
        "in the payload": at + 9,
        "between fragments": at + len(first),
        "in the header of a fragment": at + len(first) + 1,
        "in a character": front.rindex(b"\xc3") + 1,
        "in front of the terminal frame": at + len(first + second + middle),
        "in the terminal frame": len(whole) - 9,
        "behind the terminal frame": len(whole),
    }
    return whole, Places(classes, len(whole))


def _frame(data: bytes, first: int = 0x81) -> bytes:
    """A frame of a server: text that is whole, unless told otherwise."""
    size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
    return bytes([first]) + size + data
