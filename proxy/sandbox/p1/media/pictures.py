"""Pictures that the simulated image service makes: real PNG files of the size that was asked for, in two colours that
follow from the prompt, and as long as a test wants them."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator

#: How much of a padded file is made at a time: whole triples, so that its base64 has no padding inside.
_STEP = 3 * 64 * 1024

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: A private chunk of any content, which every reader skips.
_FILLER = b"fiLl"


def picture(prompt: str, number: int, width: int, height: int) -> bytes:
    """A PNG with a pattern; each number of a prompt has another one."""
    digest = hashlib.sha256(f"{number}:{prompt}".encode()).digest()
    line = digest * (1 + width // (8 * len(digest)))
    stripes = [b"\0" + line[at:] + line[:at] for at in range(len(digest))]
    length = 1 + (width + 7) // 8
    rows = b"".join(stripes[at % len(stripes)][:length] for at in range(height))
    return (
        _SIGNATURE
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0))
        + _chunk(b"PLTE", digest[:6])
        + _chunk(b"IDAT", zlib.compress(rows, 1))
        + _chunk(b"IEND", b"")
    )


def padded(file: bytes, size: int) -> Iterator[bytes]:
    """The base64 text of the file in pieces, which a chunk that nobody reads makes at least `size` bytes long."""
    begin, end = file[:-12], file[-12:]
    filler = max(0, size - len(file) - 12)
    left, checksum = filler, zlib.crc32(_FILLER)
    waiting = begin + struct.pack(">I", filler) + _FILLER
    while left:
        piece = bytes(min(left, _STEP))
        left -= len(piece)
        checksum = zlib.crc32(piece, checksum)
        waiting += piece
        whole = len(waiting) - len(waiting) % 3
        yield base64.b64encode(waiting[:whole])
        waiting = waiting[whole:]
    yield base64.b64encode(waiting + struct.pack(">I", checksum) + end)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
