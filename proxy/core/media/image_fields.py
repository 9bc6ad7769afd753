"""Checks the members of a request for images, pictures included, from JSON or a form."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.core.invalid import cut
from proxy.core.media.base64_text import decoded_size, strays
from proxy.core.media.content_types import LONGEST, image_type
from proxy.core.media.pieces import Pieces
from proxy.core.media.refusals import MAX_REPEATED, UNSUPPORTED, refused, repeated, too_large
from proxy.core.media.requests import ImageRequest, InputImage

#: member -> its values, in the order in which members are checked.
CHOICES = {
    "background": ("auto", "transparent", "opaque"),
    "quality": ("auto", "low", "medium", "high"),
}
TEXTS = ("prompt", "model", *CHOICES, "size")
MAX_NUMBER = 255
MIN_ANSWERS, MAX_ANSWERS = 1, 10


def checked_fields(given: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The members for the upstream, in its order, from members of valid types; None counts as absent. Raises
    InvalidRequest.

    >>> checked_fields({"prompt": "x", "n": None}, "m")
    {'prompt': 'x', 'model': 'm', 'background': 'auto', 'quality': 'auto', 'size': 'auto'}
    """
    prompt, number = given["prompt"], given.get("n")
    if not prompt or prompt.isspace():
        raise refused("prompt must not be blank", "prompt")
    _check_choice("model", given.get("model"), (model,))
    if number is not None and not MIN_ANSWERS <= number <= MAX_ANSWERS:
        raise refused(f"n must be from {MIN_ANSWERS} to {MAX_ANSWERS}, not {number}", "n")
    for name, choices in CHOICES.items():
        _check_choice(name, given.get(name), choices)
    if given.get("size") == "":
        raise refused("size must not be empty; leave it out for auto", "size")
    fields = {"prompt": prompt, "model": model}
    fields |= {name: _given(given, name, "auto") for name in (*CHOICES, "size")}
    return fields if number is None else fields | {"n": number}


def _given(given: Mapping[str, Any], name: str, default: str) -> str:
    value = given.get(name)
    return default if value is None else value


def _check_choice(name: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        one_of = "" if len(choices) == 1 else "one of "
        raise refused(f"{name} must be {one_of}{', '.join(choices)}, not {repeated(value)}", name)


def check_types(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises InvalidRequest for a member of a JSON request that is unknown or of a wrong type."""
    for name, value in given.items():
        if name not in known:
            words = f"{repeated(name)} is not supported; this route takes {', '.join(known)}"
            raise refused(words, cut(name, MAX_REPEATED), UNSUPPORTED)
        if name in TEXTS and not isinstance(value, str | None):
            raise refused(f"{name} must be a string or null", name)
    number = given.get("n")
    if number is not None and (type(number) is not int or not 0 <= number <= MAX_NUMBER):
        raise refused(f"n must be an integer from {MIN_ANSWERS} to {MAX_ANSWERS} or null", "n")
    if given.get("prompt") is None:
        raise refused("prompt is missing; it must be a string", "prompt")


def request_size(request: ImageRequest) -> int:
    """Bytes that a request holds."""
    texts = sum(sys.getsizeof(value) for value in request.fields.values())
    return texts + sum(image.base64.size for image in request.images)


MAX_IMAGES = 5
MAX_IMAGE_BYTES = 20 * 1024 * 1024
MAX_ALL_BYTES = 50 * 1024 * 1024

#: Bytes in which the head of a data URL must be.
_MAX_HEAD = 128
_HEAD = re.compile(rb"data:([^;,]*);base64", re.IGNORECASE)
_OTHER_NAMES = {"image/jpg": "image/jpeg"}
_KNOWN = "a PNG, JPEG, GIF or WebP picture"


def check_number(number: int, param: str) -> None:
    """Raises InvalidRequest for a wrong number of images."""
    if not 1 <= number <= MAX_IMAGES:
        raise refused(f"an edit takes 1 to {MAX_IMAGES} images, not {number}", param)


def size_fault(sizes: Sequence[int]) -> str | None:
    """What is wrong with the sizes of pictures, in bytes; None if nothing is.

    >>> size_fault([1, 2]), size_fault([3 * 10**7])
    (None, 'an image is larger than 20971520 bytes')
    """
    if max(sizes, default=0) > MAX_IMAGE_BYTES:
        return f"an image is larger than {MAX_IMAGE_BYTES} bytes"
    if sum(sizes) > MAX_ALL_BYTES:
        return f"the images are larger than {MAX_ALL_BYTES} bytes together"
    return None


def identified(text: Pieces, param: str) -> InputImage:
    """The picture in valid base64. Raises InvalidRequest if its type is not accepted."""
    media_type = image_type(base64.b64decode(text.begin((LONGEST + 2) // 3 * 4)))
    if media_type is None:
        raise refused(f"each image must be {_KNOWN}; the first bytes of one are of none of these", param)
    return InputImage(media_type, text)


def image_in_url(url: Pieces, found: int) -> InputImage:
    """The picture in a data URL, whose pieces it takes. Raises InvalidRequest and TooLarge. Checks no total, since a
    body has no room for pictures that are too large together.

    found  number of `strays` of the URL
    """
    head, comma, _ = url.begin(_MAX_HEAD).partition(b",")
    match = _HEAD.fullmatch(head)
    if not comma or match is None:
        raise refused(f"each image_url must be data:<type>;base64,<data> with {_KNOWN} in it", "images")
    url.skip(len(head) + 1)
    size = decoded_size(url, found - strays(head + comma))
    if size is None:
        raise refused("each image_url must hold base64 as the standard has it, padded and without blanks", "images")
    image = identified(url, "images")
    named = match[1].decode("ascii", "replace").lower()
    if _OTHER_NAMES.get(named, named) != image.media_type:
        raise refused(f"an image_url names another type than its data have, which are {image.media_type}", "images")
    fault = size_fault([size])
    if fault is not None:
        raise too_large(fault, "images")
    return image
