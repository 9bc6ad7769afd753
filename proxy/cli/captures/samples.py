"""The smallest files that services take, 32 pixels square: what a replay sends where a capture has none."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable

SIDE = 32


def sample(media_type: str) -> str:
    """A file of this type as base64; a PNG for any type that is not known."""
    return base64.b64encode(_SAMPLES.get(media_type.lower(), _png)()).decode()


def data_url(media_type: str) -> str:
    known = media_type if media_type in _SAMPLES else "image/png"
    return f"data:{known};base64,{sample(known)}"


def _png() -> bytes:
    rows = (b"\0" * (SIDE * 3 + 1)) * SIDE
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _jpeg() -> bytes:
    """Grey: a Huffman table with one code for "no difference" and one for "end of block", two zero bits a block."""
    one_code = b"\1" + bytes(15) + b"\0"
    segments = [
        (0xDB, b"\0" + b"\1" * 64),
        (0xC0, struct.pack(">BHHBBBB", 8, SIDE, SIDE, 1, 1, 0x11, 0)),
        (0xC4, b"\0" + one_code),
        (0xC4, b"\x10" + one_code),
        (0xDA, b"\1\1\0\0\x3f\0"),
    ]
    head = b"".join(struct.pack(">BBH", 0xFF, kind, len(body) + 2) + body for kind, body in segments)
    return b"\xff\xd8" + head + bytes(SIDE * SIDE // 64 * 2 // 8) + b"\xff\xd9"


def _gif() -> bytes:
    """The dictionary is cleared after every two pixels, so all codes have three bits."""
    data = _bits([code for _ in range(SIDE * SIDE // 2) for code in ((4, 3), (0, 3), (0, 3))] + [(5, 3)])
    pieces = [data[at : at + 255] for at in range(0, len(data), 255)]
    head = b"GIF89a" + struct.pack("<HHBBB", SIDE, SIDE, 0x80, 0, 0) + bytes(6)
    image = b"," + struct.pack("<HHHHB", 0, 0, SIDE, SIDE, 0) + b"\2"
    return head + image + b"".join(bytes([len(piece)]) + piece for piece in pieces) + b"\0;"


def _webp() -> bytes:
    """Lossless, without transforms; each of the five Huffman codes has one symbol, so pixels take no bits."""
    head = [(SIDE - 1, 14), (SIDE - 1, 14), (0, 4), (0, 3)]
    body = b"\x2f" + _bits(head + [(1, 4)] * 5)
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBPVP8L" + struct.pack("<I", len(body)) + body


def _bits(codes: list[tuple[int, int]]) -> bytes:
    """`(value, bits)` one behind the other, the lowest bit first."""
    value = size = 0
    for code, width in codes:
        value |= code << size
        size += width
    return value.to_bytes(-(-size // 8), "little")


def _pdf() -> bytes:
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
    )


def _wav() -> bytes:
    """A tenth of a second of silence."""
    sound = bytes(1600)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    return b"RIFF" + struct.pack("<I", 36 + len(sound)) + b"WAVE" + form + b"data" + struct.pack("<I", 1600) + sound


_SAMPLES: dict[str, Callable[[], bytes]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/jpg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
    "application/pdf": _pdf,
    "audio/wav": _wav,
}
