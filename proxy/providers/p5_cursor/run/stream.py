"""What the service says on the stream of a run, as envelopes."""

from __future__ import annotations

import asyncio
from math import inf

import aiohttp

from proxy.errors import PROTOCOL_ERROR, UpstreamError
from proxy.providers.p5_cursor.failures import HOST_CURE, PROFILE, document_error
from proxy.providers.p5_cursor.wire.envelopes import LONG_BYTES, Envelope, EnvelopeDecoder, EnvelopeError
from proxy.providers.upstream.aiohttp_internals import UnpacksTooLarge
from proxy.providers.upstream.client import MAX_ERROR_BYTES, read_error

#: What a stream of envelopes can begin with; anything else is a document.
_FLAGS = frozenset({0, 1, 2, 3, 0x80, 0x81})


class EnvelopeStream:
    """Reads one. `read` raises UpstreamError for what is no stream, or breaks."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._decoder = EnvelopeDecoder()
        self._begun = False

    @property
    def cut(self) -> bool:
        """Whether it ended inside an envelope."""
        return self._decoder.pending

    async def read(self, limit_s: float | None = None) -> list[Envelope] | None:
        """The envelopes that the next piece completes; None at the end, or when nothing came for `limit_s`."""
        found = await self._fed(b"")  # what stood behind the last ones; if it is no envelope, nothing may follow it
        if found:
            return found
        try:
            async with asyncio.timeout(limit_s):
                chunk = await self._response.content.readany()
        except TimeoutError:
            return None
        except UnpacksTooLarge as error:
            raise unreadable(error) from None
        except (aiohttp.ClientError, OSError):
            raise cut_off("the connection broke") from None
        if not chunk:
            self._check_end()
            return None
        if not self._begun and chunk[0] not in _FLAGS:
            raise document_error((chunk + await read_error(self._response))[:MAX_ERROR_BYTES])
        self._begun = True
        return await self._fed(chunk)

    async def _fed(self, chunk: bytes) -> list[Envelope]:
        """The envelopes in front of one that takes long to unpack; or those from that one on."""
        found = [] if self._decoder.waits else self._decoded(chunk, LONG_BYTES)
        if found or not self._decoder.waits:
            return found
        return await asyncio.to_thread(self._decoded, b"", inf)

    def _decoded(self, chunk: bytes, most_packed: float) -> list[Envelope]:
        try:
            return self._decoder.feed(chunk, most_packed=most_packed)
        except EnvelopeError as error:
            raise unreadable(error) from None

    def _check_end(self) -> None:
        if not self._begun:
            words = f"the service closed the stream without an answer ({HOST_CURE})"
            raise PROFILE.error(words, kind="transport", repeatable=False, code=PROTOCOL_ERROR)

    def close(self) -> None:
        self._response.close()


def cut_off(why: str) -> UpstreamError:
    """The error of a stream that ended too early."""
    words = f"the upstream cut the answer: {why}"
    return PROFILE.error(words, kind="transport", repeatable=False, code=PROTOCOL_ERROR)


def unreadable(error: Exception) -> UpstreamError:
    """The error of one that is not what it should be."""
    return PROFILE.error(f"unreadable answer: {error}", kind="bad_answer", repeatable=False, code=PROTOCOL_ERROR)
