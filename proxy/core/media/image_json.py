"""A request for images as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.core.media.base64_text import strays
from proxy.core.media.image_fields import TEXTS, check_types, checked_fields, request_size
from proxy.core.media.input_images import check_number, image_in_url
from proxy.core.media.json_outline import JsonOutline, LongString
from proxy.core.media.pieces import Pieces
from proxy.core.media.refusals import body_too_large, refused
from proxy.core.media.requests import ImageRequest, InputImage

GENERATION_BYTES = 256 * 1024
EDIT_BYTES = 64 * 1024 * 1024

_IMAGES = "images"
_MEMBER = "image_url"


class ImageJson:
    """Reads the JSON of a generation, or of an edit."""

    def __init__(self, model: str, limit: int, *, edits: bool) -> None:
        self.limit = limit
        self.held = 0
        self._model = model
        self._edits = edits
        self._size = 0
        self._outline = JsonOutline()

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self.limit:
            raise body_too_large(self.limit)
        self._outline.feed(data)
        self.held = self._outline.held

    def end(self) -> ImageRequest:
        body = self._outline.end()
        if not isinstance(body, dict):
            raise refused("the body must be a JSON object")
        given = {name: _text(value) if name in TEXTS else value for name, value in body.items()}
        urls = _urls(given) if self._edits else []
        check_types(given, (*TEXTS, "n", _IMAGES) if self._edits else (*TEXTS, "n"))
        images = _images(urls) if self._edits else ()
        request = ImageRequest(checked_fields(given, self._model), images)
        self.held = request_size(request)
        return request


def _text(value: Any) -> Any:
    return value.text() if isinstance(value, LongString) else value


def _urls(given: Mapping[str, Any]) -> list[LongString]:
    """The `image_url` of each member of `images`. Raises InvalidRequest where the shape is another one."""
    members = given.get(_IMAGES)
    if not isinstance(members, list) or not all(map(_is_member, members)):
        raise refused(f"{_IMAGES} must be an array of objects that have {_MEMBER}, a string, and nothing else", _IMAGES)
    return [_as_long(member[_MEMBER]) for member in members]


def _is_member(member: Any) -> bool:
    return isinstance(member, dict) and member.keys() == {_MEMBER} and isinstance(member[_MEMBER], str | LongString)


def _as_long(url: str | LongString) -> LongString:
    if isinstance(url, LongString):
        return url
    text = LongString()
    text.utf8 = Pieces([url.encode()])
    text.strays = strays(url.encode())
    return text


def _images(urls: list[LongString]) -> tuple[InputImage, ...]:
    check_number(len(urls), _IMAGES)
    return tuple(image_in_url(url.utf8, url.strays) for url in urls)
