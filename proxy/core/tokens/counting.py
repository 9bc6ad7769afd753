"""What every count of tokens shares. The encoder of text is an argument, so nothing here loads a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterator

#: Flat price of an image, whatever its size.
IMAGE_TOKENS = 2000
#: Characters of base64 that a page of a PDF has, about. Services read a page as text and as an image.
PAGE_CHARS = 64 * 1024
#: Text is cut into pieces of this size before encoding. A run of a million blanks makes the encoder panic with an
#: exception that `except Exception` does not catch, and one huge piece would also take seconds without a way to stop.
MAX_PIECE = 100_000

#: Without a vocabulary: bytes of UTF-8 a token. Close for English and code, and sane for CJK, of which a character has
#: three bytes and costs about one token.
BYTES_A_TOKEN = 3.5

Length = Callable[[str], int]


def pdf_tokens(data: str) -> int:
    """The price of a PDF, by its length alone.

    >>> pdf_tokens("JVBERi0="), pdf_tokens("A" * 200_000)
    (2000, 8000)
    """
    return IMAGE_TOKENS * (1 + len(data) // PAGE_CHARS)


def pieces(text: str) -> Iterator[str]:
    """The text in pieces that are safe to encode."""
    for start in range(0, len(text), MAX_PIECE):
        yield text[start : start + MAX_PIECE]


def rough_length(text: str) -> int:
    """An estimate for when no vocabulary can be used."""
    return rough_tokens(len(text.encode("utf-8", "replace")))


def rough_tokens(size: int) -> int:
    """The same of so many bytes."""
    return int(size / BYTES_A_TOKEN + 0.999)
