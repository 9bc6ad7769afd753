"""Pictures and recordings as clients send them, and what tells that one which came back is real."""

from __future__ import annotations

import io
import math
import random
import struct
import wave
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: A private chunk of any content, which every reader skips.
_FILLER = b"fiLl"
_EMPTY_CHUNK = 12
#: Kind of colour -> values of a pixel.
_VALUES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def red_png(side: int = 8) -> bytes:
    """A red square."""
    return _png(side, side, zlib.compress((b"\0" + b"\xff\0\0" * side) * side))


def noisy_png(size: int) -> bytes:
    """A square of noise, which cannot be packed; a file of exactly `size` bytes, at least a thousand."""
    side = math.isqrt((size - 200) * 998 // 3000) - 1
    noise = random.Random(size)
    rows = b"".join(b"\0" + noise.randbytes(3 * side) for _ in range(side))
    packed = zlib.compress(rows, 0)  # to try and pack it takes seconds
    return _png(side, side, packed, filler=size - len(_png(side, side, packed)) - _EMPTY_CHUNK)


def png_sides(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG. Raises AssertionError when it is none, or not a whole one."""
    if not data.startswith(_SIGNATURE):
        raise AssertionError(f"no PNG: {data[:16]!r}")
    chunks, place = [], len(_SIGNATURE)
    while place < len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        if struct.pack(">I", zlib.crc32(kind + body)) != data[place + 8 + length : place + 12 + length]:
            raise AssertionError(f"chunk {kind!r} is damaged")
        chunks.append((kind, body))
        place += _EMPTY_CHUNK + length
    if (chunks[0][0], chunks[-1]) != (b"IHDR", (b"IEND", b"")):
        raise AssertionError(f"chunks {[kind for kind, _ in chunks]}")
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[0][1])
    rows = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    if len(rows) != height * (1 + (width * depth * _VALUES[colour] + 7) // 8):
        raise AssertionError(f"{len(rows)} bytes of pixels for {width}x{height}")
    return width, height


def recording(seconds: float = 1.0, rate: int = 16_000) -> bytes:
    """A WAV of a tone of 440 Hz."""
    frames = (round(20_000 * math.sin(math.tau * 440 * at / rate)) for at in range(round(seconds * rate)))
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(b"".join(struct.pack("<h", frame) for frame in frames))
    return file.getvalue()


def _png(width: int, height: int, packed: bytes, filler: int | None = None) -> bytes:
    """Of eight bits a colour; with a chunk of so many bytes that nobody reads."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    more = b"" if filler is None else _chunk(_FILLER, bytes(filler))
    return _SIGNATURE + _chunk(b"IHDR", header) + more + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
