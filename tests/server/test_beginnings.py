"""Of many requests at once few begin in a turn of the event loop."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from proxy.server.request.admission import BEGIN_AT_ONCE, Beginnings

MANY = 5 * BEGIN_AT_ONCE


def work(seconds: float) -> None:
    """Holds the loop."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        pass


class Begun:
    """Requests in the order in which they began, and how many had after each turn of the loop."""

    def __init__(self) -> None:
        self.beginnings = Beginnings()
        self.order: list[int] = []
        self.turns = [0]

    async def request(self, number: int) -> None:
        await self.beginnings.turn()
        work(0.001)
        self.order.append(number)

    def start(self, count: int) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.request(number)) for number in range(count)]

    async def all(self, count: int) -> None:
        while len(self.order) < count:
            await asyncio.sleep(0)
            self.turns.append(len(self.order))

    @property
    def most(self) -> int:
        """Most requests that began in one turn."""
        return max(after - before for before, after in pairwise(self.turns))


async def test_few_begin_in_one_turn_and_in_order() -> None:
    begun = Begun()
    tasks = begun.start(MANY)
    await begun.all(MANY)
    await asyncio.gather(*tasks)
    assert begun.order == list(range(MANY))
    assert begun.most == BEGIN_AT_ONCE


async def test_one_begins_at_once_again_and_again() -> None:
    beginnings = Beginnings()
    for _ in range(MANY):
        turn = beginnings.turn()
        try:
            turn.send(None)
        except StopIteration:
            pass
        else:
            raise AssertionError("it waited")
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_one_that_is_cancelled_while_it_waits_takes_nobodys_turn() -> None:
    begun = Begun()
    tasks = begun.start(MANY)
    await asyncio.sleep(0)
    gone = range(BEGIN_AT_ONCE, 2 * BEGIN_AT_ONCE)
    for number in gone:
        tasks[number].cancel()
    await begun.all(MANY - len(gone))
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun.order == [number for number in range(MANY) if number not in gone]
    assert begun.most == BEGIN_AT_ONCE
