"""What a checked request for images or for a transcript says, whatever form it came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.core.media.pieces import Pieces


@dataclass(frozen=True, slots=True)
class InputImage:
    """A picture to work on: its media type by its first bytes, and its base64 text, padded and without blanks."""

    media_type: str
    base64: Pieces


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """A request for images.

    fields  the members that go upstream, in their order: prompt, model, background, quality, size, and n when it was
            given
    images  what an edit works on; empty for a generation
    """

    fields: Mapping[str, Any]
    images: tuple[InputImage, ...] = ()

    @property
    def edits(self) -> bool:
        return bool(self.images)


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """A recording to be written down.

    name        file name, fit to stand between quotes in a header
    media_type  one that the service takes, in lower case, with its parameters
    language    None when none was named
    as_text     the caller wants the bare text in place of JSON
    """

    audio: Pieces
    name: str
    media_type: str
    language: str | None = None
    as_text: bool = False
