"""Reads requests for images: from JSON, and edits from a form, too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proxy.core.invalid import cut
from proxy.core.media.base64_text import Base64Encoder, strays
from proxy.core.media.form_parts import FormParts, JudgedText, Part, TextPart
from proxy.core.media.image_fields import (
    MAX_ANSWERS,
    MAX_IMAGES,
    MAX_NUMBER,
    MIN_ANSWERS,
    TEXTS,
    check_number,
    check_types,
    checked_fields,
    identified,
    image_in_url,
    request_size,
    size_fault,
)
from proxy.core.media.json_outline import JsonOutline, LongString
from proxy.core.media.multipart import PartHead
from proxy.core.media.pieces import Pieces
from proxy.core.media.refusals import MAX_REPEATED, UNSUPPORTED, body_too_large, refused, repeated, too_large
from proxy.core.media.requests import ImageRequest, InputImage

GENERATION_BYTES = 256 * 1024
EDIT_BYTES = 64 * 1024 * 1024

_IMAGES = "images"
_MEMBER = "image_url"


class ImageJson:
    """Reads the JSON of a generation, or of an edit. `model` is the only valid model."""

    def __init__(self, model: str, *, edits: bool) -> None:
        self.limit = EDIT_BYTES if edits else GENERATION_BYTES
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
    """The `image_url` of each member of `images`. Raises InvalidRequest for any other shape."""
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


_IMAGE = "image"
_FILES = frozenset({_IMAGE, "image[]"})
_TAKEN = ", ".join((_IMAGE, *TEXTS, "n"))
#: Leading zeros are allowed.
_DIGITS = re.compile(r"\+?[0-9]{1,20}")


class EditForm:
    """Reads the form of an edit."""

    limit = EDIT_BYTES

    def __init__(self, boundary: bytes, model: str) -> None:
        self._form = FormParts(boundary, self.limit)
        self._model = model
        self._texts: dict[str, TextPart] = {}
        self._number: JudgedText[int] | None = None
        self._images = _Pictures()
        self._request: ImageRequest | None = None

    @property
    def held(self) -> int:
        if self._request is not None:
            return request_size(self._request)
        return self._form.held + self._images.held + sum(part.held for part in self._texts.values())

    def feed(self, data: bytes) -> None:
        self._form.feed(data, self._begin)

    def end(self) -> ImageRequest:
        self._form.end()
        images = self._images.checked()
        if "prompt" not in self._texts:
            raise refused("prompt is missing", "prompt")
        given: dict[str, Any] = {name: part.text() for name, part in self._texts.items()}
        given["n"] = None if self._number is None else self._number.value
        self._request = ImageRequest(checked_fields(given, self._model), images)
        return self._request

    def _begin(self, head: PartHead) -> Part:
        if head.name in _FILES:
            self._images.begin()
            return self._images
        if head.name == "mask":
            raise refused("a mask is not supported", "mask", UNSUPPORTED)
        if head.name == "n":
            self._number = JudgedText(head, _number)
            return self._number
        if head.name in TEXTS:
            self._texts[head.name] = TextPart(head)
            return self._texts[head.name]
        name = "a part without a name" if head.name is None else f"the part {repeated(head.name)}"
        param = cut(head.name, MAX_REPEATED) if head.name else None
        raise refused(f"{name} is not supported; an edit takes {_TAKEN}", param, UNSUPPORTED)


def _number(text: str) -> int:
    if not _DIGITS.fullmatch(text) or int(text) > MAX_NUMBER:
        raise refused(f"n must be a number from {MIN_ANSWERS} to {MAX_ANSWERS}, not {repeated(text)}", "n")
    return int(text)


class _Pictures:
    """The pictures of a form, one after another. Once they are too many or too large only their sizes are kept: the
    request will be refused, but what follows may be a worse fault."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._texts: list[Base64Encoder] = []
        self._kept = True

    @property
    def held(self) -> int:
        return sum(text.held for text in self._texts)

    def begin(self) -> None:
        """Begins another picture."""
        self._sizes.append(0)
        self._texts.append(Base64Encoder())
        self._look()

    def add(self, data: bytes) -> None:
        self._sizes[-1] += len(data)
        self._look()
        if self._kept:
            self._texts[-1].add(data)

    def end(self) -> None:
        if self._kept:
            self._texts[-1].end()

    def _look(self) -> None:
        if self._kept and (len(self._sizes) > MAX_IMAGES or size_fault(self._sizes) is not None):
            self._kept = False
            self._texts.clear()

    def checked(self) -> tuple[InputImage, ...]:
        """The pictures. Raises InvalidRequest and TooLarge."""
        check_number(len(self._sizes), _IMAGE)
        fault = size_fault(self._sizes)
        if fault is not None:
            raise too_large(fault, _IMAGE)
        return tuple(identified(text.text, _IMAGE) for text in self._texts)
