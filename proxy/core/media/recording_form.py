"""Reads the form of a transcription. The type of a recording follows from the header of its part, its file name and its
first bytes."""

from __future__ import annotations

import re
from functools import partial

from proxy.core.media.content_types import LONGEST, recording_type
from proxy.core.media.form_parts import FormParts, Ignored, JudgedText, Part, TextPart
from proxy.core.media.multipart import PartHead
from proxy.core.media.pieces import Pieces
from proxy.core.media.refusals import UNSUPPORTED, refused, repeated, too_large
from proxy.core.media.requests import TranscriptionRequest

#: Longest name under which a recording is sent.
MAX_NAME_BYTES = 255
#: Longest extension, in characters.
_MAX_EXTENSION = 16
_UNNAMED = "audio.webm"
_FOLDERS = re.compile(r".*[/\\]", re.DOTALL)
_UNFIT = re.compile(r'[\x00-\x1f\x7f"]')
#: A media type that does not match counts as absent.
_READABLE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")

#: Types that the service accepts.
_TAKEN_TYPES = frozenset(
    f"audio/{kind}" for kind in ("flac", "m4a", "mp3", "mp4", "mpeg", "ogg", "wav", "wave", "webm", "x-m4a", "x-wav")
)
KINDS = "flac, m4a, mp3, mp4, mpeg, mpga, ogg, opus, wav or webm"
#: Types that clients send for files that the service accepts: curl has no types of recordings, SDKs use the second for
#: bytes without a name, and name some containers after the video that they may hold.
_VAGUE = frozenset(
    {
        *("", "application/octet-stream", "application/ogg", "video/webm", "video/mp4", "video/mpeg"),
        *("audio/opus", "audio/x-flac", "audio/vnd.wave", "audio/mpga", "audio/oga"),
    }
)
_OF_EXTENSION = {name: f"audio/{name}" for name in ("flac", "m4a", "mp3", "mp4", "mpeg", "ogg", "wav", "webm")}
_OF_EXTENSION |= {"mpga": "audio/mpeg", "oga": "audio/ogg", "opus": "audio/ogg"}


def media_type(named: str, filename: str | None, first: bytes) -> str | None:
    """The type under which a recording is sent, with its parameters; None if it has no accepted one.

    >>> media_type("Audio/WebM;codecs=opus", None, b""), media_type("application/octet-stream", "A.WAV", b"")
    ('audio/webm;codecs=opus', 'audio/wav')
    """
    kind, semicolon, rest = named.strip().partition(";")
    kind = kind.strip().lower()
    if kind in _TAKEN_TYPES:
        readable = rest.isascii() and rest.isprintable()
        return f"{kind}{semicolon}{rest}" if readable else kind
    if kind not in _VAGUE and _READABLE.fullmatch(kind):
        return None
    _, dot, extension = (filename or "").rpartition(".")
    return (dot and _OF_EXTENSION.get(extension.lower())) or recording_type(first)


def file_name(given: str | None) -> str:
    r"""A file name without folders, fit for use between quotes in a header.

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


FORM_BYTES = 26 * 1024 * 1024
MAX_AUDIO_BYTES = 25 * 1024 * 1024
MAX_LANGUAGE_BYTES = 64

_FILE = "file"
_FORMAT = "response_format"
_TAKEN = "file, model, language, response_format"
#: Members that change the answer in a way that the service does not support. Errors name them in `param`, since these
#: names are the API's, not the caller's.
_REFUSED = frozenset(
    {
        *("prompt", "temperature", "timestamp_granularities", "timestamp_granularities[]", "include", "include[]"),
        *("chunking_strategy", "known_speaker_names[]", "known_speaker_references[]"),
    }
)
#: member -> its supported values.
_CHOICES = {_FORMAT: ("", "json", "text"), "stream": ("", "false", "False")}


class RecordingForm:
    """Reads the form of a transcription."""

    limit = FORM_BYTES

    def __init__(self, boundary: bytes) -> None:
        self._form = FormParts(boundary, self.limit)
        self._file: _File | None = None
        self._language: TextPart | None = None
        self._chosen: dict[str, JudgedText[str]] = {}

    @property
    def held(self) -> int:
        return self._form.held + sum(part.held for part in (self._file, self._language) if part is not None)

    def feed(self, data: bytes) -> None:
        self._form.feed(data, self._begin)

    def end(self) -> TranscriptionRequest:
        self._form.end()
        if self._file is None:
            raise refused("file is missing", _FILE)
        kind = self._file.checked_type()
        language = "" if self._language is None else self._language.text().strip()
        if len(language.encode()) > MAX_LANGUAGE_BYTES:
            raise refused(f"language must not be longer than {MAX_LANGUAGE_BYTES} bytes", "language")
        form = self._chosen.get(_FORMAT)
        as_text = form is not None and form.value == "text"
        return TranscriptionRequest(self._file.audio, self._file.name, kind, language or None, as_text)

    def _begin(self, head: PartHead) -> Part:
        name = head.name
        if name == _FILE:
            if self._file is not None:
                raise refused("there must be one file, not several", _FILE)
            self._file = _File(head)
            return self._file
        if name == "language":
            self._language = TextPart(head)
            return self._language
        if name in _CHOICES:
            self._chosen[name] = JudgedText(head, partial(_choice, name))
            return self._chosen[name]
        if name == "model":
            return Ignored()
        part = "a part without a name" if name is None else repeated(name)
        param = name if name in _REFUSED else None
        raise refused(f"{part} is not supported; a transcription takes {_TAKEN}", param, UNSUPPORTED)


def _choice(name: str, value: str) -> str:
    if value not in _CHOICES[name]:
        values = " or ".join(filter(None, _CHOICES[name][:3]))
        raise refused(f"{name} {repeated(value)} is not supported; it may be {values}", name, UNSUPPORTED)
    return value


class _File:
    """The recording, which is not kept if it is too large."""

    def __init__(self, head: PartHead) -> None:
        self.audio = Pieces()
        self._size = 0
        self._head = head

    @property
    def held(self) -> int:
        return self.audio.size

    @property
    def name(self) -> str:
        return file_name(self._head.filename)

    def add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MAX_AUDIO_BYTES:
            self.audio = Pieces()
        else:
            self.audio.add(data)

    def end(self) -> None: ...

    def checked_type(self) -> str:
        """The media type. Raises InvalidRequest and TooLarge."""
        if not self._size:
            raise refused("file is empty", _FILE)
        if self._size > MAX_AUDIO_BYTES:
            raise too_large(f"file is larger than {MAX_AUDIO_BYTES} bytes", _FILE)
        kind = media_type(self._head.content_type, self._head.filename, self.audio.begin(LONGEST))
        if kind is None:
            named = repeated(self._head.content_type)
            raise refused(f"file must be a recording ({KINDS}); its type is {named}", _FILE)
        return kind
