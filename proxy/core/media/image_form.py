"""An edit of images as a form."""

from __future__ import annotations

from proxy.core.media.image_json import EDIT_BYTES
from proxy.core.media.requests import ImageRequest


class EditForm:
    """Reads the form of an edit."""

    limit = EDIT_BYTES
    held = 0

    def __init__(self, boundary: bytes, model: str) -> None:
        self._model = model

    def feed(self, data: bytes) -> None:
        raise NotImplementedError

    def end(self) -> ImageRequest:
        raise NotImplementedError
