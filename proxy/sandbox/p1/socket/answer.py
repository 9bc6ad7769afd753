"""One answer on a socket of P1: the events of HTTP in frames, after events of the account; and its faults.

A fault that also exists over HTTP has the same name and effect here, so that one step fits either transport. A status
of HTTP comes as an event of type `error`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from aiohttp import WSMsgType

from proxy.core.sse import dump_json
from proxy.sandbox.p1.failures import HTTP_FAULTS
from proxy.sandbox.p1.socket.link import not_found, too_old
from proxy.sandbox.play.actions import FRONT_FAULTS, NAMED, Action, Cut, Framing, Pause, Raw, Stall
from proxy.sandbox.play.script import Place
from proxy.sandbox.play.stream_faults import Fault, begun, between, break_off, huge_frame, insert, pieces_of
from proxy.sandbox.upstream import ServedWire
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.responses.answer import ResponsesAnswer
from proxy.sandbox.wires.responses.faults import RESPONSES_FAULTS, rate_limits

_FINAL = 0x80

#: Up to here the length is in the second byte; longer ones follow it, in two bytes or eight.
_SHORT = 125
_MEDIUM = 0xFFFF


def frame(payload: bytes, kind: WSMsgType = WSMsgType.TEXT, *, final: bool = True) -> bytes:
    """One frame.

    >>> frame(b"hi")
    b'\\x81\\x02hi'
    """
    head = kind | (_FINAL if final else 0)
    size = len(payload)
    if size <= _SHORT:
        return struct.pack("!BB", head, size) + payload
    if size <= _MEDIUM:
        return struct.pack("!BBH", head, _SHORT + 1, size) + payload
    return struct.pack("!BBQ", head, _SHORT + 2, size) + payload


def fragments(payload: bytes, count: int) -> list[bytes]:
    """One text message in at most `count` frames of about the same size."""
    size = max(-(-len(payload) // count), 1)
    pieces = [payload[start : start + size] for start in range(0, len(payload), size)] or [b""]
    kinds = [WSMsgType.TEXT, *[WSMsgType.CONTINUATION] * (len(pieces) - 1)]
    return [
        frame(piece, kind, final=place == len(pieces))
        for place, (piece, kind) in enumerate(zip(pieces, kinds, strict=True), 1)
    ]


def _encode(events: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join([frame(dump_json(event).encode()) for event in events])


#: One text frame for each event.
SOCKET = Framing(_encode, NAMED.is_delta)


#: Close code of a socket whose answer ended without saying so.
NORMAL_CLOSURE = 1000


@dataclass(kw_only=True)
class SocketAnswer(ResponsesAnswer):
    """An answer on a socket. `account_events` come first, unless they are not to be `announced`.

    A fault may leave pings unanswered (`ignores_pings`), or have the socket closed after its actions: `close` is the
    code and the reason."""

    framing: ClassVar[Framing] = SOCKET

    account_events: list[Event] = field(default_factory=list)
    announced: bool = True
    ignores_pings: bool = False
    close: tuple[int, str] | None = None

    @classmethod
    def of(cls, answer: ResponsesAnswer, account_events: list[Event], *, announced: bool) -> SocketAnswer:
        """The HTTP answer for a socket."""
        members = {one.name: getattr(answer, one.name) for one in fields(answer)}
        return cls(**members, account_events=account_events, announced=announced)

    def finished(self, actions: Iterable[Action]) -> list[Action]:
        actions = super().finished(actions)
        begins = actions and isinstance(actions[0], dict) and actions[0]["type"] == "response.created"
        return [*self.account_events, *actions] if begins and self.announced else actions


def error_event(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Event:
    """The HTTP answer with that status, as an event."""
    event: Event = {"type": "error", "status": status, "error": _error_of(status, body)}
    return {**event, "headers": dict(headers)} if headers else event


def _error_of(status: int, body: Any) -> Any:
    """The error object of a body; a body in the gateway's own form becomes its text."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return body["error"]
    text = body.get("detail") if isinstance(body, dict) else body
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"message": str(text or f"HTTP status {status}"), "type": kind, "code": None, "param": None}


#: Close code of a server with internal trouble.
INTERNAL_ERROR = 1011

#: More than the 64 MiB that a client accepts in one message.
OVERSIZED_BYTES = 65 * 1024 * 1024

_ITEM_DONE = "response.output_item.done"

_PING = Raw(frame(b"sandbox", WSMsgType.PING))

#: Faults of event lines or bytes, which frames cannot have.
_LINES_ONLY = ("comments", "comments_only", "crlf", "done_sentinel", "json_answer", "named_error")


def _after_call(answer: SocketAnswer) -> list[Action]:
    """The actions up to the end of the first call: its item is done, the answer is not."""
    actions, place = begun(answer, "call")
    rest = enumerate(actions[place:], place + 1)
    return actions[: next(end for end, one in rest if isinstance(one, dict) and one["type"] == _ITEM_DONE)]


#: Point where a socket may end -> the actions before it.
_POINTS: dict[str, Fault] = {
    "at_once": lambda answer: break_off(answer, "nothing"),
    "after_control": lambda answer: [*answer.account_events],
    "before_output": lambda answer: break_off(answer, "created"),
    "thinking": lambda answer: break_off(answer, "thinking"),
    "text": lambda answer: break_off(answer, "text"),
    "arguments": lambda answer: break_off(answer, "call"),
    "after_call": _after_call,
    "after_limit": lambda answer: rate_limits(answer, then_end=True),
    "after_terminal": lambda answer: answer.stream(),
}


def _cut(before: Fault) -> Fault:
    """Ends the connection without a close frame."""
    return lambda answer, reset=False: [*before(answer), Cut(reset)]


def _close(before: Fault) -> Fault:
    """Closes correctly, but at the wrong moment."""
    return lambda answer, code=INTERNAL_ERROR, reason="": before(_closed(answer, code, reason))


def _closed(answer: SocketAnswer, code: int, reason: str = "") -> SocketAnswer:
    answer.close = (code, reason)
    return answer


def _pings_only(answer: SocketAnswer, after: str = "created", count: int = 1000, every_s: float = 0.05) -> list[Action]:
    pulse: list[Action] = [_PING, Pause(every_s)]
    return insert(answer, after, *(pulse * count))


def _control_only(answer: SocketAnswer, count: int = 1000, every_s: float = 0.05) -> list[Action]:
    """Sends only repeated events of the account for a while."""
    repeated = [action for _ in range(count) for one in answer.account_events for action in ({**one}, Pause(every_s))]
    return [*repeated, *answer.stream()]


def _pongs_withheld(answer: SocketAnswer, after: str = "created") -> list[Action]:
    """Sends nothing more and answers no pings, as if the other end were gone."""
    answer.ignores_pings = True
    return break_off(answer, after, Stall())


def _binary_frame(answer: SocketAnswer, after: str = "text") -> list[Action]:
    return insert(answer, after, Raw(frame(dump_json(answer.text_event("x")).encode(), WSMsgType.BINARY)))


def _malformed_json(
    answer: SocketAnswer, after: str = "text", count: int = 1, text: str = '{"type":"resp'
) -> list[Action]:
    """Sends text frames that are not JSON."""
    return insert(answer, after, *[Raw(frame(text.encode()))] * count)


def _but_end(answer: SocketAnswer) -> tuple[list[Event], Action]:
    """Splits the normal answer and its end: the socket must recognise the end."""
    *actions, end = answer.finished(answer.stream())
    return [action for action in actions if isinstance(action, dict)], end


def _tiny_writes(answer: SocketAnswer, size: int = 1) -> list[Action]:
    events, end = _but_end(answer)
    return [*pieces_of(answer.encode(events), size), end]


def _fragments(answer: SocketAnswer, count: int = 3) -> list[Action]:
    """Splits every message but the last into several frames, with a ping after each, as is allowed."""
    events, end = _but_end(answer)
    pieces = (Raw(piece) for event in events for piece in fragments(dump_json(event).encode(), count))
    return [*(one for piece in pieces for one in (piece, _PING)), end]


#: The statuses of HTTP, except those of its front, which do not occur after an upgrade.
_STATUSES = {name: fault for name, fault in HTTP_FAULTS.items() if name not in FRONT_FAULTS}

SOCKET_FAULTS: dict[str, Fault] = {
    **{name: fault for name, fault in RESPONSES_FAULTS.items() if name not in _LINES_ONLY},
    **{f"cut_{name}": _cut(before) for name, before in _POINTS.items()},
    **{f"close_{name}": _close(before) for name, before in _POINTS.items()},
    "pings": lambda answer: between(answer, lambda _: _PING),
    "pings_only": _pings_only,
    "control_only": _control_only,
    "pongs_withheld": _pongs_withheld,
    "binary_frame": _binary_frame,
    "malformed_json": _malformed_json,
    "oversized_frame": lambda answer, after="text", size=OVERSIZED_BYTES: huge_frame(answer, after, size),
    "tiny_writes": _tiny_writes,
    "fragments": _fragments,
    # with the other name of the status, which also occurs
    "previous_response_not_found": lambda answer, after="nothing": break_off(
        answer, after, {"type": "error", "status_code": 400, **not_found("resp_0").body}
    ),
    # the socket is too old, and closed
    "connection_limit": lambda answer, after="nothing": break_off(
        _closed(answer, NORMAL_CLOSURE), after, error_event(400, too_old().body)
    ),
}

SOCKET_WIRE = ServedWire(Place("p1", "websocket"), _STATUSES, SOCKET_FAULTS)
