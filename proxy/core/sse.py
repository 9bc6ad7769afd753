"""Server-sent events, both ways: an incremental decoder and an encoder.

The decoder takes bytes in any split and gives frames; the encoder gives bytes. Neither knows what the data means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

#: One frame may not exceed this. A `response.completed` repeats the whole answer, so it is generous; past it the
#: upstream is broken and the memory is ours.
MAX_FRAME_BYTES = 8 * 1024 * 1024

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class FrameTooLarge(ValueError):
    """A frame passed the limit."""


class SSEDecoder:
    """Bytes in any split to frames `(event, data)`.

    Line ends may be LF, CR or CRLF, also split over two chunks; comment lines, `id:` and `retry:` are skipped; several
    `data:` lines are joined by LF; a frame without data is dropped. `event` is b"" when the frame names none.

    >>> decoder = SSEDecoder()
    >>> decoder.feed(b'event: a\\ndata: {"x"'), decoder.feed(b":1}\\r\\n\\r\\n")
    ([], [(b'a', b'{"x":1}')])
    """

    def __init__(self, max_frame: int = MAX_FRAME_BYTES) -> None:
        self._max = max_frame
        self._parts: list[bytes] = []  # the unfinished frame; joined only when its end is seen
        self._size = 0
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """The frames that this chunk completes. Raises FrameTooLarge."""
        if not chunk:
            return []
        chunk = self._with_plain_line_ends(chunk)
        ends_here = b"\n\n" in chunk or (chunk[:1] == b"\n" and self._parts and self._parts[-1][-1:] == b"\n")
        if not ends_here:
            self._keep(chunk)
            return []
        self._parts.append(chunk)
        *blocks, rest = b"".join(self._parts).split(b"\n\n")
        self._parts, self._size = [], 0
        self._keep(rest)
        frames = []
        for block in blocks:
            if len(block) > self._max:
                raise FrameTooLarge(f"a frame of {len(block)} bytes passed the limit of {self._max}")
            frame = _parse_block(block)
            if frame is not None:
                frames.append(frame)
        return frames

    @property
    def has_partial(self) -> bool:
        """Whether bytes of an unfinished frame are waiting: at the end of a body that means it was cut.

        A trailing comment or blank line is not a frame.
        """
        return _parse_block(b"".join(self._parts)) is not None

    def _keep(self, chunk: bytes) -> None:
        if chunk:
            self._parts.append(chunk)
            self._size += len(chunk)
            if self._size > self._max:
                raise FrameTooLarge(f"a frame passed the limit of {self._max} bytes")

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        if not self._started:
            self._started = True
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        if b"\r" not in chunk:
            self._after_cr = self._after_cr and not chunk
            return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _parse_block(block: bytes) -> tuple[bytes, bytes] | None:
    event = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            event = value.removeprefix(b" ")
    return (event, b"\n".join(data)) if data else None


def dump_json(value: Any) -> str:
    """Compact JSON text, non-ASCII kept."""
    return _dumps(value)


def encode_events(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Events that carry their name in `type`, as one piece of bytes for one write.

    >>> encode_events([{"type": "ping"}])
    b'event: ping\\ndata: {"type":"ping"}\\n\\n'
    """
    return "".join([f"event: {event['type']}\ndata: {_dumps(event)}\n\n" for event in events]).encode()
