"""Media types: read from header values, with parameters, and from the first bytes of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxy.core.media.refusals import broken

#: Longest boundary; the standard allows 70.
MAX_BOUNDARY = 200

_PARAMETER = re.compile(r'\s*;\s*(?:([^\s;="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^\s;"]*)))?', re.DOTALL)
#: A backslash before anything else is literal: file names of Windows are sent unescaped.
_ESCAPED = re.compile(r'\\(["\\])')


def essence(content_type: str) -> str:
    """Returns a media type without its parameters.

    >>> essence(" Multipart/Form-Data ; boundary=x")
    'multipart/form-data'
    """
    return content_type.partition(";")[0].strip().lower()


def parameters(value: str) -> dict[str, str] | None:
    r"""The parameters of a header value, with names in lower case. None if they cannot be read, or if one occurs twice,
    since readers may disagree about it.

    >>> parameters('form-data; name="a \\"b\\""; FileName=x.png')
    {'name': 'a "b"', 'filename': 'x.png'}
    >>> parameters("form-data; name=a; name=b"), parameters("form-data; name")
    (None, None)
    """
    found: dict[str, str] = {}
    place = len(value.partition(";")[0])
    while place < len(value):
        match = _PARAMETER.match(value, place)
        if match is None:
            return None if value[place:].strip() else found
        name, quoted, token = match.groups()
        if name is not None:
            if name.lower() in found:
                return None
            found[name.lower()] = token if quoted is None else _ESCAPED.sub(r"\1", quoted)
        place = match.end()
    return found


def boundary_of(content_type: str) -> bytes:
    """The boundary between the parts of a form. Raises InvalidRequest if there is no usable one.

    >>> boundary_of('multipart/form-data; charset=utf-8; Boundary="a b"')
    b'a b'
    """
    boundary = (parameters(content_type) or {}).get("boundary", "")
    if not boundary:
        raise broken("its content type names no boundary")
    if len(boundary) > MAX_BOUNDARY or not boundary.isascii() or not boundary.isprintable() or boundary[-1] == " ":
        raise broken("the boundary in its content type cannot be used")
    return boundary.encode()


#: Bytes of the longest signature.
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
    """The media type of a picture, None if it is unknown.

    >>> image_type(b"GIF89a"), image_type(b"GIF88a")
    ('image/gif', None)
    """
    return _type(first, _IMAGES)


def recording_type(first: bytes) -> str | None:
    """The media type of a recording, None if it is unknown."""
    return _type(first, _RECORDINGS)


def _type(first: bytes, signatures: Mapping[str, re.Pattern[bytes]]) -> str | None:
    return next((name for name, signature in signatures.items() if signature.match(first)), None)
