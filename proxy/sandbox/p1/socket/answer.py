"""One answer on a socket of P1: the events of HTTP in frames, with events of the account in front."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from aiohttp import WSMsgType

from proxy.core.sse import dump_json
from proxy.sandbox.play.actions import NAMED, Action, Framing
from proxy.sandbox.wires.answer import Event
from proxy.sandbox.wires.responses.answer import ResponsesAnswer

_FINAL = 0x80

#: Up to here the length stands in the second byte; longer ones follow it, in two bytes or eight.
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


#: An event a text frame.
SOCKET = Framing(_encode, NAMED.is_delta)


#: How a socket is closed whose answer ended without saying so.
NORMAL_CLOSURE = 1000


@dataclass(kw_only=True)
class SocketAnswer(ResponsesAnswer):
    """`account_events` come first, unless they are not to be `announced`.

    A fault may leave pings unanswered (`ignores_pings`), or have the socket closed after its actions: `close` is the
    code and the reason.
    """

    framing: ClassVar[Framing] = SOCKET

    account_events: list[Event] = field(default_factory=list)
    announced: bool = True
    ignores_pings: bool = False
    close: tuple[int, str] | None = None

    @classmethod
    def of(cls, answer: ResponsesAnswer, account_events: list[Event], *, announced: bool) -> SocketAnswer:
        """The answer that would go over HTTP."""
        members = {one.name: getattr(answer, one.name) for one in fields(answer)}
        return cls(**members, account_events=account_events, announced=announced)

    def finished(self, actions: Iterable[Action]) -> list[Action]:
        actions = super().finished(actions)
        begins = actions and isinstance(actions[0], dict) and actions[0]["type"] == "response.created"
        return [*self.account_events, *actions] if begins and self.announced else actions


def error_event(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Event:
    """What HTTP would answer with that status, as an event."""
    event: Event = {"type": "error", "status": status, "error": _error_of(status, body)}
    return {**event, "headers": dict(headers)} if headers else event


def _error_of(status: int, body: Any) -> Any:
    """The error object of a body, which is made of the text in the gateway's own form."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return body["error"]
    text = body.get("detail") if isinstance(body, dict) else body
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"message": str(text or f"HTTP status {status}"), "type": kind, "code": None, "param": None}
