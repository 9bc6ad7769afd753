"""Readers of request bodies of the media routes: take bytes as they arrive, return a checked request, do no I/O.

    reader = edit_form(boundary_of(content_type), "gpt-image-2")
    for data in body:
        reader.feed(data)
    request = reader.end()

A body is never held in addition to what is kept of it: pictures of a form become base64 while they arrive, those in
JSON stay text, and neither is joined.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from proxy.core.media.content_types import boundary_of
from proxy.core.media.image_requests import EDIT_BYTES, GENERATION_BYTES, EditForm, ImageJson
from proxy.core.media.recording_form import RecordingForm
from proxy.core.media.refusals import body_too_large
from proxy.core.media.requests import ImageRequest, TranscriptionRequest

__all__ = [
    "BodyReader",
    "body_too_large",
    "boundary_of",
    "edit_form",
    "edit_json",
    "generation_json",
    "transcription_form",
]

Request = TypeVar("Request", covariant=True)


class BodyReader(Protocol[Request]):
    """Reads one body.

    limit  most bytes of the body; `feed` raises TooLarge beyond. A caller that knows the length before raises
           `body_too_large(limit)`
    held   bytes that are held now, to be read after each `feed`, and after `end`. It may shrink: what is too large is
           not kept, but read to its end, since what follows may be a worse fault
    """

    @property
    def limit(self) -> int: ...

    @property
    def held(self) -> int: ...

    def feed(self, data: bytes) -> None:
        """Takes the next bytes, best at most 256 KiB at once, at 1 to 4 ms a MB. Raises InvalidRequest and TooLarge at
        the first bad part; then the rest of the body need not be read."""
        ...

    def end(self) -> Request:
        """The request, once the whole body was fed. Raises InvalidRequest and TooLarge."""
        ...


def generation_json(model: str) -> BodyReader[ImageRequest]:
    """The reader of a generation in JSON. `model` is the only valid model."""
    return ImageJson(model, GENERATION_BYTES, edits=False)


def edit_json(model: str) -> BodyReader[ImageRequest]:
    return ImageJson(model, EDIT_BYTES, edits=True)


def edit_form(boundary: bytes, model: str) -> BodyReader[ImageRequest]:
    return EditForm(boundary, model)


def transcription_form(boundary: bytes) -> BodyReader[TranscriptionRequest]:
    return RecordingForm(boundary)
