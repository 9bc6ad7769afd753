"""Splits texts into streamed pieces, and counts their tokens."""

from __future__ import annotations

import re
from typing import Any

#: Arguments stream in pieces of this many characters, so that even a short call has several.
ARGUMENT_PIECE = 12

#: A simulator needs no vocabulary: four characters are a token on average.
CHARS_PER_TOKEN = 4

#: Tokens of one picture or film, whatever the length of its data URL.
IMAGE_TOKENS = 1_000

_WORD = re.compile(r"\s*\S+(?:\s+$)?")

#: Parts without text for the model: their data is long, their cost is not.
_PICTURES = ("input_image", "image_url", "video_url", "image")


def words(text: str) -> list[str]:
    """The text in pieces of one word each, blanks kept; joined they are the text.

    >>> words("one  two ")
    ['one', '  two ']
    """
    return _WORD.findall(text) or ([text] if text else [])


def pieces(text: str, size: int = ARGUMENT_PIECE) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def tokens_of(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def estimate_tokens(*values: Any) -> int:
    """A rough count of a request's tokens: all texts in the values, at any depth, and the pictures."""
    return max(1, -(-sum(map(_characters, values)) // CHARS_PER_TOKEN))


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(map(_characters, value))
    if isinstance(value, dict):
        if value.get("type") in _PICTURES:
            return IMAGE_TOKENS * CHARS_PER_TOKEN
        return sum(map(_characters, value.values()))
    return 0


def media_type(url: str) -> str:
    """The media type of a data URL; "url" for a link.

    >>> media_type("data:image/png;base64,aGk=")
    'image/png'
    """
    return url[5:].partition(";")[0] if url.startswith("data:") else "url"
