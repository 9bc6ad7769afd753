"""How the body of a request is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable

from proxy.core.media.pieces import Pieces

#: Bodies of requests up to this size are sent at once, longer ones in pieces of it.
SENT_PIECE = 64 * 1024


def in_pieces(
    body: bytes | Pieces, headers: dict[str, str], timer: asyncio.Timeout, timeout_s: float
) -> tuple[bytes | AsyncGenerator[bytes | memoryview, None], dict[str, str]]:
    """What aiohttp is given as the body and as the headers of a POST: a long body goes out piece by piece. A file would
    do so too, but to read one it is copied at once, on the loop: 30 ms for 60 MB.

    timer, timeout_s  wound up behind each piece
    """
    if isinstance(body, Pieces):
        return _sent(body, timer, timeout_s), headers
    if len(body) <= SENT_PIECE:
        return body, headers
    pieces = (memoryview(body)[at : at + SENT_PIECE] for at in range(0, len(body), SENT_PIECE))
    return _sent(pieces, timer, timeout_s), {**headers, "Content-Length": str(len(body))}


async def _sent(
    body: Iterable[bytes | memoryview], timer: asyncio.Timeout, timeout_s: float
) -> AsyncGenerator[bytes | memoryview, None]:
    """The pieces. After each others get their turn, which a reader as fast as we are would not leave them, and the
    timer is wound up: a large body may take minutes on a slow line."""
    for piece in body:
        yield piece
        with contextlib.suppress(RuntimeError):  # the answer came before the end of the request
            timer.reschedule(asyncio.get_running_loop().time() + timeout_s)
        await asyncio.sleep(0)
