"""WebSocket frames as a server sends them: not masked, without extensions."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import WSMsgType

from proxy.core.sse import dump_json
from proxy.sandbox.play.actions import NAMED, Framing

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
