"""A request for images as JSON."""

from __future__ import annotations

import json

from proxy.core.media.image_fields import check_types, checked_fields
from proxy.core.media.refusals import body_too_large, refused
from proxy.core.media.requests import ImageRequest
from proxy.core.sse import load_json

GENERATION_BYTES = 256 * 1024
EDIT_BYTES = 64 * 1024 * 1024


class ImageJson:
    """Reads the JSON of a generation, or of an edit."""

    def __init__(self, model: str, limit: int, *, edits: bool) -> None:
        self.limit = limit
        self._model = model
        self._edits = edits
        self._body = b""

    @property
    def held(self) -> int:
        return len(self._body)

    def feed(self, data: bytes) -> None:
        self._body += data
        if len(self._body) > self.limit:
            raise body_too_large(self.limit)

    def end(self) -> ImageRequest:
        try:
            body = load_json(self._body.decode())
        except (json.JSONDecodeError, UnicodeDecodeError, ValueError, RecursionError):
            raise refused("the body is not valid JSON") from None
        if not isinstance(body, dict):
            raise refused("the body must be a JSON object")
        check_types(body)
        return ImageRequest(checked_fields(body, self._model))
