"""The size of a picture from its first bytes: PNG, JPEG, GIF and WebP."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable

#: What the service can look at, in pixels.
SMALLEST_SIDE = 8
SMALLEST_AREA = 512

Size = tuple[int, int]

_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})


def image_fault(url: str) -> str | None:
    """What is wrong with an image of a request, in the words of the service; None when nothing is.

    A link is not followed.
    """
    if url.startswith("https://"):
        return None
    head, _, data = url.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64"):
        return "Could not process image: expected a data URL or https."
    try:
        size = size_of(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        size = None
    if size is None:
        return "Could not process image"
    width, height = size
    if min(size) < SMALLEST_SIDE or width * height < SMALLEST_AREA:
        return f"Image is too small: {width}x{height}. It needs at least {SMALLEST_AREA} pixels."
    return None


def size_of(data: bytes) -> Size | None:
    """Width and height; None for what is no picture of these kinds."""
    for magic, read in _KINDS:
        if data.startswith(magic):
            try:
                return read(data)
            except (struct.error, IndexError):
                return None
    return None


def _png(data: bytes) -> Size:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> Size:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> Size | None:
    place = 2
    while place + 4 <= len(data):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        place += 2 if marker in _BARE_MARKERS else 2 + struct.unpack_from(">H", data, place + 2)[0]
    return None


def _webp(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None


_KINDS: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8", _jpeg),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"RIFF", _webp),
)
