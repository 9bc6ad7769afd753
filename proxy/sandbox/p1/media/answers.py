"""The answers of the simulated image and transcription services.

Pictures are real PNG files of the requested size, in two colours that follow from the prompt, and as long as a test
wants them.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from proxy.core.sse import dump_json
from proxy.sandbox.p1.media.checks import Part

#: The size for "auto".
_SIDES = (1024, 1024)
_QUALITY = {"auto": "medium"}
_BACKGROUND = {"auto": "opaque"}

#: Replaces a picture while the rest of an answer is written.
_MARK = "@"

#: Place and bytes in a recording -> its format.
_FORMATS = (
    (0, b"RIFF", "WAV"),
    (0, b"OggS", "Ogg"),
    (0, b"fLaC", "FLAC"),
    (0, b"ID3", "MP3"),
    (4, b"ftyp", "MP4"),
    (0, b"\x1aE\xdf\xa3", "WebM"),
)


@dataclass(kw_only=True)
class MediaAnswer:
    """A good answer's JSON and headers."""

    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return dump_json(self.body).encode()

    def pieces(self) -> Iterator[bytes]:
        yield self.data


@dataclass(kw_only=True)
class ImageAnswer(MediaAnswer):
    """`files` are the pictures, `least` is the minimum number of bytes of each."""

    files: list[bytes]
    least: int = 0

    def pieces(self) -> Iterator[bytes]:
        """The answer's data in pieces, with files padded to the wanted length."""
        marked = {**self.body, "data": [{"b64_json": _MARK} for _ in self.files]}
        first, *rest = dump_json(marked).encode().split(_MARK.encode())
        yield first
        for file, behind in zip(self.files, rest, strict=True):
            yield from padded(file, self.least) if self.least > len(file) else [base64.b64encode(file)]
            yield behind


def image_answer(
    asked: Mapping[str, Any], pictures: int, *, created: int, least: int, headers: Mapping[str, str]
) -> ImageAnswer:
    """The pictures for a good request; `pictures` is how many it edits."""
    width, height = _SIDES if asked["size"] == "auto" else map(int, asked["size"].split("x"))
    files = [picture(asked["prompt"], number, width, height) for number in range(asked.get("n", 1))]
    text, seen, made = len(asked["prompt"]) // 4 + 1, 323 * pictures, width * height // 1024 * len(files)
    body = {
        "created": created,
        "background": _BACKGROUND.get(asked["background"], asked["background"]),
        "data": [{"b64_json": base64.b64encode(file).decode()} for file in files],
        "output_format": "png",
        "quality": _QUALITY.get(asked["quality"], asked["quality"]),
        "size": f"{width}x{height}",
        "usage": {
            "input_tokens": text + seen,
            "input_tokens_details": {"image_tokens": seen, "text_tokens": text},
            "output_tokens": made,
            "total_tokens": text + seen + made,
        },
    }
    return ImageAnswer(body=body, headers=headers, files=files, least=least)


def transcript(file: Part, language: str | None, headers: Mapping[str, str]) -> MediaAnswer:
    """The transcript of the service: the recording's kind, length and language."""
    words = f"This is a recording of {len(file.data)} bytes, {_format(file.data)} as {file.kind}"
    seconds = _seconds(file.data)
    words += f", {seconds:.2f} seconds long" if seconds is not None else ""
    words += f", in {language}" if language else ""
    return MediaAnswer(body={"text": f"{words}."}, headers=headers)


def _format(data: bytes) -> str:
    return next(
        (name for place, begin, name in _FORMATS if data[place : place + len(begin)] == begin), "no known format"
    )


def _seconds(data: bytes) -> float | None:
    """The length of a WAV file in seconds, from its data size and byte rate."""
    at = data.find(b"data", 36, 4096)
    if not data.startswith(b"RIFF") or not 0 <= at <= len(data) - 8:
        return None
    (rate,), (size,) = struct.unpack_from("<I", data, 28), struct.unpack_from("<I", data, at + 4)
    return size / rate if rate else None


#: Bytes of a padded file that are made at a time: whole triples, so that the base64 has no padding inside.
_STEP = 3 * 64 * 1024

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: A private chunk with any content, which every reader skips.
_FILLER = b"fiLl"


def picture(prompt: str, number: int, width: int, height: int) -> bytes:
    """A PNG with a pattern that differs for each number of a prompt."""
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
    """The base64 text of the file in pieces. A private chunk makes the file at least `size` bytes long."""
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
