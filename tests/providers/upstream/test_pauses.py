"""What counts as a pause of a body: only the time in which somebody waits for it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from unittest.mock import Mock

import aiohttp
import pytest

from proxy.providers.upstream.event_reader import PauseTimer


def body_here() -> aiohttp.StreamReader:
    return aiohttp.StreamReader(Mock(_reading_paused=False), 2**16, loop=asyncio.get_running_loop())


async def test_whoever_waits_too_long_is_told() -> None:
    with closing(PauseTimer(body_here(), 0.02)) as pauses, pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await pauses.read()


async def test_a_reader_that_is_busy_elsewhere_makes_no_pause() -> None:
    body = body_here()
    with closing(PauseTimer(body, 0.02)) as pauses:
        for _ in range(3):
            await asyncio.sleep(0.06)
            body.feed_data(b"x")
            assert await pauses.read() == b"x"
        body.feed_eof()
        assert await pauses.read() == b""


async def test_each_piece_begins_the_time_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    body, waits = body_here(), 0
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    pauses = PauseTimer(body, 10.0)
    with closing(pauses):
        for _ in range(5):
            reading = asyncio.ensure_future(pauses.read())
            await asyncio.sleep(0)
            now += 9.0
            pauses._look()
            assert not reading.done()
            body.feed_data(b"x")
            assert await reading == b"x"
            waits += 1
        reading = asyncio.ensure_future(pauses.read())
        await asyncio.sleep(0)
        now += 10.0
        pauses._look()
        with pytest.raises(TimeoutError):
            await reading
    assert waits == 5
