"""Bodies of the media routes, and what their readers make of them."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from pictures import png

from proxy.core.invalid import InvalidRequest, TooLarge
from proxy.core.media.requests import BodyReader

MODEL = "gpt-image-2"
BOUNDARY = b"a-boundary"

PNG = base64.b64decode(png(2, 2))
JPEG = b"\xff\xd8\xff\xe0 and so on"
GIF = b"GIF89a and so on"
WEBP = b"RIFF\x10\x00\x00\x00WEBPVP8 "
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "


def data_url(data: bytes = PNG, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def part(name: str | None, data: bytes | str = b"", *, filename: str | None = None, media_type: str = "") -> bytes:
    """One part of a form without its boundary."""
    head = "Content-Disposition: form-data"
    head += "" if name is None else f'; name="{name}"'
    head += "" if filename is None else f'; filename="{filename}"'
    head += f"\r\nContent-Type: {media_type}" if media_type else ""
    return head.encode() + b"\r\n\r\n" + (data.encode() if isinstance(data, str) else data)


def form(*parts: bytes, boundary: bytes = BOUNDARY) -> bytes:
    """A whole form."""
    return b"".join(b"--" + boundary + b"\r\n" + each + b"\r\n" for each in parts) + b"--" + boundary + b"--\r\n"


def read(reader: BodyReader[Any], body: bytes | Iterable[bytes]) -> Any:
    """What a reader makes of a body, or of one in chunks."""
    for chunk in [body] if isinstance(body, bytes) else body:
        reader.feed(chunk)
    return reader.end()


Refusal = tuple[int, str | None, str | None]


def refusal(reader: BodyReader[Any], body: bytes | Iterable[bytes]) -> Refusal | None:
    """Status, code and param with which a body is refused, None when it is taken."""
    try:
        read(reader, body)
    except InvalidRequest as error:
        assert len(error.message) < 500
        return 413 if isinstance(error, TooLarge) else 400, error.code, error.param
    return None
