from __future__ import annotations

import asyncio
import time

from own_time import TURN_S, OwnTimeLoop


async def test_what_others_take_is_no_time() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, OwnTimeLoop)
    began = loop.time()
    time.sleep(0.1)
    assert loop.time() - began <= TURN_S


async def test_a_wait_takes_its_time() -> None:
    loop = asyncio.get_running_loop()
    began, really = loop.time(), time.monotonic()
    await asyncio.sleep(0.02)
    assert 0.02 <= loop.time() - began < 0.04
    assert time.monotonic() - really >= 0.019


async def test_a_limit_is_not_passed_while_the_machine_stands_still() -> None:
    async with asyncio.timeout(0.05):
        for _ in range(3):
            time.sleep(0.06)
            await asyncio.sleep(0)
