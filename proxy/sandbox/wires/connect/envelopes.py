"""Connect's envelopes (a byte of flags, four bytes of length, the payload), and its errors (code, message, details)."""

from __future__ import annotations

import base64
import gzip
import struct
from collections.abc import Mapping
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.wires.refusal import Refused

GZIP, END = 0x01, 0x02

_HEAD = struct.Struct(">BI")


def envelope(payload: bytes, flags: int = 0, *, compressed: bool = False) -> bytes:
    """
    >>> envelope(b"abc").hex()
    '0000000003616263'
    """
    if compressed:
        payload, flags = gzip.compress(payload, mtime=0), flags | GZIP
    return _HEAD.pack(flags, len(payload)) + payload


def end_of_stream(body: Mapping[str, Any] | str, *, compressed: bool = False) -> bytes:
    """The last envelope; `body` is `{}`, an `error`, or a text that is sent unchanged."""
    text = body if isinstance(body, str) else dump_json(body)
    return envelope(text.encode(), END, compressed=compressed)


def read_envelopes(data: bytes) -> list[tuple[int, bytes]]:
    """Flags and payload of each envelope. Raises ValueError when the last one is incomplete."""
    found = []
    place = 0
    while place < len(data):
        if len(data) - place < _HEAD.size:
            raise ValueError("protocol error: incomplete envelope")
        flags, size = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        if len(data) - place < size:
            raise ValueError(f"protocol error: promised {size} bytes in enveloped message, got {len(data) - place}")
        found.append((flags, data[place : place + size]))
        place += size
    return found


#: Code -> status of an HTTP answer without a stream.
STATUSES = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}


def connect_error(code: str | None, message: str | None = None, debug: dict[str, Any] | None = None) -> dict[str, Any]:
    """`{"code","message","details"}`, without members that are None. `debug` is the readable form of the one detail,
    whose value is opaque."""
    error: dict[str, Any] = {} if code is None else {"code": code}
    if message is not None:
        error["message"] = message
    if debug:
        value = base64.b64encode(str(debug.get("error", "")).encode()).decode().rstrip("=")
        error["details"] = [{"type": "aiserver.v1.ErrorDetails", "value": value, "debug": debug}]
    return error


class FailedCall(Exception):
    """A failed call, as a Connect error: it ends a stream, or answers another call."""

    def __init__(self, code: str, message: str, debug: dict[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.body = connect_error(code, message, debug)

    def refused(self) -> Refused:
        """The error as an HTTP answer."""
        return Refused(STATUSES[self.code], self.body)
