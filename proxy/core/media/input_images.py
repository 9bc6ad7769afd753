"""The pictures that an edit works on: their number and size, and what they are."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from proxy.core.media.base64_text import decoded_size, strays
from proxy.core.media.pieces import Pieces
from proxy.core.media.refusals import refused, too_large
from proxy.core.media.requests import InputImage
from proxy.core.media.signatures import LONGEST, image_type

MAX_IMAGES = 5
MAX_IMAGE_BYTES = 20 * 1024 * 1024
MAX_ALL_BYTES = 50 * 1024 * 1024

#: The head of a data URL is looked for in as many bytes.
_MAX_HEAD = 128
_HEAD = re.compile(rb"data:([^;,]*);base64", re.IGNORECASE)
_OTHER_NAMES = {"image/jpg": "image/jpeg"}
_KNOWN = "a PNG, JPEG, GIF or WebP picture"


def check_number(number: int, param: str) -> None:
    """Raises InvalidRequest."""
    if not 1 <= number <= MAX_IMAGES:
        raise refused(f"an edit takes 1 to {MAX_IMAGES} images, not {number}", param)


def size_fault(sizes: Sequence[int]) -> str | None:
    """What is wrong with the sizes of pictures in bytes.

    >>> size_fault([1, 2]), size_fault([3 * 10**7])
    (None, 'an image is larger than 20971520 bytes')
    """
    if max(sizes, default=0) > MAX_IMAGE_BYTES:
        return f"an image is larger than {MAX_IMAGE_BYTES} bytes"
    if sum(sizes) > MAX_ALL_BYTES:
        return f"the images are larger than {MAX_ALL_BYTES} bytes together"
    return None


def identified(text: Pieces, param: str) -> InputImage:
    """A picture whose base64 is right. Raises InvalidRequest when it is none that is taken."""
    media_type = image_type(base64.b64decode(text.begin((LONGEST + 2) // 3 * 4)))
    if media_type is None:
        raise refused(f"each image must be {_KNOWN}; the first bytes of one are of none of these", param)
    return InputImage(media_type, text)


def image_in_url(url: Pieces, found: int) -> InputImage:
    """The picture in a data URL, whose pieces it becomes. Raises InvalidRequest and TooLarge. A body has no room for
    pictures that are too large together.

    found  how many `strays` the URL has
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
