"""Checked requests for images and transcripts, and what makes them of request bodies: readers, which take bytes as they
arrive and do no I/O.

    reader = EditForm(boundary_of(content_type), "gpt-image-2")
    for data in body:
        reader.feed(data)
    request = reader.end()

A body is never held in addition to what is kept of it: pictures of a form become base64 while they arrive, those in
JSON stay text, and neither is joined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from proxy.core.media.pieces import Pieces


@dataclass(frozen=True, slots=True)
class InputImage:
    """A picture to work on: its media type by its first bytes, and its base64 text, padded and without blanks."""

    media_type: str
    base64: Pieces


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """A request for images.

    fields  the members for the upstream, in order: prompt, model, background, quality, size, and n if it was given
    images  the pictures of an edit; empty for a generation
    """

    fields: Mapping[str, Any]
    images: tuple[InputImage, ...] = ()

    @property
    def edits(self) -> bool:
        return bool(self.images)


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """A request to transcribe a recording.

    name        file name, fit for use between quotes in a header
    media_type  one that the service accepts, in lower case, with its parameters
    language    None if none was named
    as_text     whether the caller wants the bare text in place of JSON
    """

    audio: Pieces
    name: str
    media_type: str
    language: str | None = None
    as_text: bool = False


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
