"""Connect envelopes: one byte of flags, four of length (big endian), the payload (section 2.3)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

#: A payload as it is sent; the length in front of it is refused before any of it is kept.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
#: The same unpacked.
MAX_UNPACKED_BYTES = 64 * 1024 * 1024

COMPRESSED, END, TRAILERS = 0x01, 0x02, 0x80
_KNOWN = COMPRESSED | END | TRAILERS
_HEADER_BYTES = 5
_GZIP = 31  # zlib's number for "with a gzip header"


class EnvelopeError(ValueError):
    """Bytes that are no envelope, or too many of them."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One envelope, unpacked. `end`: nothing follows, and the payload is JSON (or the trailers of grpc-web)."""

    end: bool
    payload: bytes


def envelope(payload: bytes, flags: int = 0) -> bytes:
    """The payload as it is, behind its header."""
    return bytes((flags,)) + len(payload).to_bytes(4, "big") + payload


class EnvelopeDecoder:
    """Envelopes out of pieces of any size. After an EnvelopeError it is of no more use."""

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def pending(self) -> bool:
        """An envelope has begun and is not complete."""
        return bool(self._held)

    def feed(self, chunk: bytes) -> list[Envelope]:
        self._held += chunk
        return list(self._complete())

    def _complete(self) -> Iterator[Envelope]:
        held, at = self._held, 0
        try:
            while len(held) - at >= _HEADER_BYTES:
                flags, size = held[at], int.from_bytes(held[at + 1 : at + _HEADER_BYTES], "big")
                _check(flags, size)
                start, stop = at + _HEADER_BYTES, at + _HEADER_BYTES + size
                if stop > len(held):
                    break
                payload = bytes(held[start:stop])
                at = stop
                yield Envelope(bool(flags & (END | TRAILERS)), _unpacked(payload) if flags & COMPRESSED else payload)
        finally:
            del held[:at]


def _check(flags: int, size: int) -> None:
    if flags & ~_KNOWN:
        raise EnvelopeError(f"unknown envelope flags 0x{flags:02x}")
    if size > MAX_PAYLOAD_BYTES:
        raise EnvelopeError(f"an envelope of {size} bytes; {MAX_PAYLOAD_BYTES} are the most")


def _unpacked(payload: bytes) -> bytes:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        content = unpacker.decompress(payload, MAX_UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise EnvelopeError(f"an envelope that is not gzip: {error}") from None
    if len(content) > MAX_UNPACKED_BYTES:
        raise EnvelopeError(f"an envelope of more than {MAX_UNPACKED_BYTES} bytes unpacked")
    if not unpacker.eof:
        raise EnvelopeError("an envelope whose gzip data is cut")
    return content
