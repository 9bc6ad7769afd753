"""Checked requests for images and transcripts, from JSON or forms."""

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
