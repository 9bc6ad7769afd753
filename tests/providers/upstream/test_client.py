"""How the body of a request is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from proxy.core.media.pieces import BLOCK, Pieces
from proxy.providers.upstream.client import SENT_PIECE, _sent, in_pieces


@pytest.mark.parametrize("size", [SENT_PIECE, SENT_PIECE + 1, 3 * SENT_PIECE])
async def test_a_long_body_goes_out_in_pieces_and_with_its_length(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with asyncio.timeout(1) as timer:
        data, headers = in_pieces(body, {"a": "b"}, timer, 1)
        if isinstance(data, bytes):
            assert (size, data, headers) == (SENT_PIECE, body, {"a": "b"})
            return
        pieces = [bytes(piece) async for piece in data]
    assert b"".join(pieces) == body and max(map(len, pieces)) == SENT_PIECE
    assert headers == {"a": "b", "Content-Length": str(size)}


async def test_a_body_in_pieces_may_take_longer_than_the_head_of_its_answer() -> None:
    pieces = [letter * BLOCK for letter in (b"a", b"b", b"c", b"d")]
    body = Pieces(pieces)
    async with asyncio.timeout(0.1) as timer:
        sent = _sent(body, timer, 0.1)
        first = await anext(sent)
        body.drop()  # as when the answer comes before its end
        assert [first, *[piece async for piece in slowly(sent)]] == pieces
    assert [piece async for piece in _sent(Pieces(pieces), timer, 0.1)] == pieces  # the answer is there
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02) as timer:
            await anext(slowly(_sent(Pieces(pieces), timer, 0.02)))


async def slowly(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        await asyncio.sleep(0.05)
        yield piece
