"""Base64 in pieces: encodes bytes as they arrive, and checks texts without decoding them."""

from __future__ import annotations

import base64
import binascii
import string

from proxy.core.media.pieces import Pieces

_DIGITS = (string.ascii_letters + string.digits + "+/").encode()


def strays(data: bytes) -> int:
    """Number of bytes that are no digits of base64, padding included.

    >>> strays(b"AAA="), strays(b"data:image/png,")
    (1, 2)
    """
    return len(data.translate(None, _DIGITS))


class Base64Encoder:
    """Keeps bytes as base64."""

    def __init__(self) -> None:
        self.text = Pieces()
        self._rest = b""

    @property
    def held(self) -> int:
        """Bytes held now."""
        return self.text.size + len(self._rest)

    def add(self, data: bytes) -> None:
        """Adds bytes; up to two of them wait for the next ones."""
        data = self._rest + data
        whole = len(data) // 3 * 3
        self._rest = data[whole:]
        self.text.add(binascii.b2a_base64(data[:whole], newline=False))

    def end(self) -> None:
        """Encodes the waiting bytes."""
        self.text.add(base64.b64encode(self._rest))
        self._rest = b""


def decoded_size(text: Pieces, found: int) -> int | None:
    """Bytes that a text of base64 decodes to; None if it is invalid: digits of the standard alphabet, padded, without
    blanks, and without bits left over in the last one.

    found  its number of `strays`

    >>> decoded_size(Pieces([b"QU", b"I="]), 1), decoded_size(Pieces([b"QUJ="]), 1), decoded_size(Pieces([b"QUI"]), 0)
    (2, None, None)
    """
    end = text.end(4)
    padding = len(end) - len(end.rstrip(b"="))
    if text.size % 4 or found != padding or padding > 2:
        return None
    # Bits left over in the last digit are lost when it is decoded.
    if base64.b64encode(base64.b64decode(end)) != end:
        return None
    return text.size // 4 * 3 - padding
