"""A recording and how it is to be written down, as a form."""

from __future__ import annotations

from proxy.core.media.requests import TranscriptionRequest

FORM_BYTES = 26 * 1024 * 1024


class RecordingForm:
    """Reads the form of a transcription."""

    limit = FORM_BYTES
    held = 0

    def __init__(self, boundary: bytes) -> None:
        pass

    def feed(self, data: bytes) -> None:
        raise NotImplementedError

    def end(self) -> TranscriptionRequest:
        raise NotImplementedError
