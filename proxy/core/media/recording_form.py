"""A recording and how it is to be written down, as a form."""

from __future__ import annotations

from functools import partial

from proxy.core.media.form_parts import FormParts, Part
from proxy.core.media.form_texts import Ignored, JudgedText, TextPart
from proxy.core.media.multipart import PartHead
from proxy.core.media.pieces import Pieces
from proxy.core.media.recordings import KINDS, file_name, media_type
from proxy.core.media.refusals import UNSUPPORTED, refused, repeated, too_large
from proxy.core.media.requests import TranscriptionRequest
from proxy.core.media.signatures import LONGEST

FORM_BYTES = 26 * 1024 * 1024
MAX_AUDIO_BYTES = 25 * 1024 * 1024
MAX_LANGUAGE_BYTES = 64

_FILE = "file"
_FORMAT = "response_format"
_TAKEN = "file, model, language, response_format"
#: What changes the answer in a way that the service does not know. Their names are the API's, all others the caller's.
_REFUSED = frozenset(
    {
        *("prompt", "temperature", "timestamp_granularities", "timestamp_granularities[]", "include", "include[]"),
        *("chunking_strategy", "known_speaker_names[]", "known_speaker_references[]"),
    }
)
#: member -> the values that can be answered
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
        told = "a part without a name" if name is None else repeated(name)
        param = name if name in _REFUSED else None
        raise refused(f"{told} is not supported; a transcription takes {_TAKEN}", param, UNSUPPORTED)


def _choice(name: str, value: str) -> str:
    if value not in _CHOICES[name]:
        values = " or ".join(filter(None, _CHOICES[name][:3]))
        raise refused(f"{name} {repeated(value)} is not supported; it may be {values}", name, UNSUPPORTED)
    return value


class _File:
    """The recording; one that is too large is not kept."""

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
