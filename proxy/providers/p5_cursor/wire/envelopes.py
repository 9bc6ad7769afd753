"""The envelopes of messages. The headers of a call are those of the vendor's command line, as which the service knows
us. The envelopes are Connect's: one byte of flags, four of length (big endian), the payload."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from math import inf

from proxy.core.sizes import most_unpacked


def call_headers(token: str, version: str, request_id: str, run_id: str, content_type: str) -> dict[str, str]:
    """The headers of every call.

    version     build to name, `cli-…`; the service refuses others
    request_id  of this call
    run_id      of the call's run; a call without a run uses its own id
    """
    return {
        "authorization": f"Bearer {token}",
        "connect-protocol-version": "1",
        "content-type": content_type,
        "user-agent": "connect-es/1.6.1",
        "x-cursor-client-type": "cli",
        "x-cursor-client-version": version,
        "x-ghost-mode": "true",
        # without it an answer may come in blobs instead of text
        "x-cursor-streaming": "true",
        "x-request-id": request_id,
        "x-original-request-id": run_id,
    }


#: Bytes of a payload as sent; a larger length is refused before any of it is kept.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
#: Bytes of a payload after unpacking.
MAX_UNPACKED_BYTES = 64 * 1024 * 1024
#: More packed bytes than this are unpacked off the loop: each may become a thousand.
LONG_BYTES = 4 * 1024

COMPRESSED, END, TRAILERS = 0x01, 0x02, 0x80
_KNOWN = COMPRESSED | END | TRAILERS
_HEADER_BYTES = 5
_GZIP = 31  # zlib's number for "with a gzip header"


class EnvelopeError(ValueError):
    """The bytes are not an envelope, or too many."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One envelope, unpacked. `end`: nothing follows, and the payload is JSON (or the trailers of grpc-web)."""

    end: bool
    payload: bytes


def envelope(payload: bytes, flags: int = 0) -> bytes:
    """An envelope with this payload, unpacked."""
    return bytes((flags,)) + len(payload).to_bytes(4, "big") + payload


class EnvelopeDecoder:
    """Reads envelopes from pieces of any size. Bytes after the end are ignored. `waits`: a complete one was left."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._ended = False
        self._error: EnvelopeError | None = None
        self._left = inf
        self.waits = False

    @property
    def pending(self) -> bool:
        """Whether an envelope has begun and is not complete, or is invalid."""
        return bool(self._held)

    def feed(self, chunk: bytes, *, most_packed: float = inf) -> list[Envelope]:
        """The envelopes that are complete now. Raises EnvelopeError for an invalid one. Those before it are still
        returned, and the next call raises, even with an empty piece: the split of the bytes makes no difference.

        most_packed  packed bytes to unpack; the next envelope is left to the next call, and `waits`
        """
        if self._error is not None:
            raise self._error
        if self._ended:
            return []
        self._held += chunk
        self.waits, self._left = False, most_packed
        found: list[Envelope] = []
        try:
            while (one := self._next()) is not None:
                found.append(one)
        except EnvelopeError as error:
            self._error = error
            if not found:
                raise
        return found

    def _next(self) -> Envelope | None:
        held = self._held
        if not held:
            return None
        flags = held[0]
        if flags & ~_KNOWN:  # checked at its first byte, for a body that is something else
            raise EnvelopeError(f"unknown envelope flags 0x{flags:02x}")
        size = int.from_bytes(held[1:_HEADER_BYTES], "big") if len(held) >= _HEADER_BYTES else 0
        if size > MAX_PAYLOAD_BYTES:
            raise EnvelopeError(f"an envelope of {size} bytes; the limit is {MAX_PAYLOAD_BYTES}")
        stop = _HEADER_BYTES + size
        if stop > len(held):
            return None
        if flags & COMPRESSED:
            self._left -= size
            self.waits = self._left < 0
            if self.waits:
                return None
        payload = bytes(held[_HEADER_BYTES:stop])
        if flags & COMPRESSED:
            payload = _unpacked(payload)
        self._ended = bool(flags & (END | TRAILERS))
        del held[: len(held) if self._ended else stop]  # moves the start, not the rest
        return Envelope(self._ended, payload)


def _unpacked(payload: bytes) -> bytes:
    if not payload:  # Connect's own writers leave it unpacked, whatever the flag
        return payload
    unpacker, most = zlib.decompressobj(_GZIP), min(MAX_UNPACKED_BYTES, most_unpacked(len(payload)))
    try:
        content = unpacker.decompress(payload, most + 1)
    except zlib.error as error:
        raise EnvelopeError(f"an envelope that is not gzip: {error}") from None
    if len(content) > most:
        raise EnvelopeError(f"an envelope that unpacks to more than {most} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise EnvelopeError("an envelope whose gzip data ends elsewhere than it does")
    return content
