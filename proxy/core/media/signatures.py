"""What a file is by its first bytes. Nothing else of it is looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: As many bytes as any signature has.
LONGEST = 12

_IMAGES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_RECORDINGS = {
    "audio/wav": re.compile(rb"RIFF....WAVE", re.DOTALL),
    "audio/ogg": re.compile(rb"OggS"),
    "audio/flac": re.compile(rb"fLaC"),
    "audio/mp3": re.compile(rb"ID3"),
    "audio/webm": re.compile(rb"\x1a\x45\xdf\xa3"),
    "audio/mp4": re.compile(rb"....ftyp", re.DOTALL),
}


def image_type(first: bytes) -> str | None:
    """The media type of a picture.

    >>> image_type(b"GIF89a"), image_type(b"GIF88a")
    ('image/gif', None)
    """
    return _type(first, _IMAGES)


def recording_type(first: bytes) -> str | None:
    """The media type of a recording."""
    return _type(first, _RECORDINGS)


def _type(first: bytes, signatures: Mapping[str, re.Pattern[bytes]]) -> str | None:
    return next((name for name, signature in signatures.items() if signature.match(first)), None)
