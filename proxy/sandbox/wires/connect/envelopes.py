"""Connect's envelopes: a byte of flags, four bytes of length, the payload."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping
from typing import Any

from proxy.core.sse import dump_json

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
    """The envelope behind which nothing comes; `body` is `{}`, an `error`, or a text that is sent as it is."""
    text = body if isinstance(body, str) else dump_json(body)
    return envelope(text.encode(), END, compressed=compressed)


def read_envelopes(data: bytes) -> list[tuple[int, bytes]]:
    """Flags and payload of each. Raises ValueError when the last one is not whole."""
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
