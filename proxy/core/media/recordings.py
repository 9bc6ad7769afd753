"""What a recording is called, and what it is: by what its part says, by its file name, by its first bytes."""

from __future__ import annotations

import re

from proxy.core.media.signatures import recording_type

#: Of the name under which a recording goes out.
MAX_NAME_BYTES = 255
#: An extension with more characters is none.
_MAX_EXTENSION = 16
_UNNAMED = "audio.webm"
_FOLDERS = re.compile(r".*[/\\]", re.DOTALL)
_UNFIT = re.compile(r'[\x00-\x1f\x7f"]')
#: What is none of this counts as absent.
_READABLE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")

#: What the service takes.
_TAKEN = frozenset(
    f"audio/{kind}" for kind in ("flac", "m4a", "mp3", "mp4", "mpeg", "ogg", "wav", "wave", "webm", "x-m4a", "x-wav")
)
KINDS = "flac, m4a, mp3, mp4, mpeg, mpga, ogg, opus, wav or webm"
#: What clients send for files that the service takes: curl knows no recordings, SDKs send bytes without a name as the
#: second and name some containers after the pictures that may be in them.
_VAGUE = frozenset(
    {
        *("", "application/octet-stream", "application/ogg", "video/webm", "video/mp4", "video/mpeg"),
        *("audio/opus", "audio/x-flac", "audio/vnd.wave", "audio/mpga", "audio/oga"),
    }
)
_OF_EXTENSION = {name: f"audio/{name}" for name in ("flac", "m4a", "mp3", "mp4", "mpeg", "ogg", "wav", "webm")}
_OF_EXTENSION |= {"mpga": "audio/mpeg", "oga": "audio/ogg", "opus": "audio/ogg"}


def media_type(named: str, filename: str | None, first: bytes) -> str | None:
    """The type under which a recording goes out, with the parameters that came with it; None when there is none.

    >>> media_type("Audio/WebM;codecs=opus", None, b""), media_type("application/octet-stream", "A.WAV", b"")
    ('audio/webm;codecs=opus', 'audio/wav')
    """
    kind, semicolon, rest = named.strip().partition(";")
    kind = kind.strip().lower()
    if kind in _TAKEN:
        readable = rest.isascii() and rest.isprintable()
        return f"{kind}{semicolon}{rest}" if readable else kind
    if kind not in _VAGUE and _READABLE.fullmatch(kind):
        return None
    _, dot, extension = (filename or "").rpartition(".")
    return (dot and _OF_EXTENSION.get(extension.lower())) or recording_type(first)


def file_name(given: str | None) -> str:
    r"""A file name without folders, fit to stand between quotes in a header.

    >>> file_name("../recording.webm"), file_name('C:\\a"\\b".wav'), file_name("..")
    ('recording.webm', 'b.wav', 'audio.webm')
    """
    name = _UNFIT.sub("", _FOLDERS.sub("", given or ""))
    if name in ("", ".", ".."):
        return _UNNAMED
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    stem, dot, extension = name.rpartition(".")
    end = dot + extension if len(extension) <= _MAX_EXTENSION else ""
    stem = stem if end else name
    return stem.encode()[: MAX_NAME_BYTES - len(end.encode())].decode("utf-8", "ignore") + end
