"""How late the event loop is: a task that waits for a moment and looks when it woke up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

#: The distance between two looks, in seconds.
EVERY_S = 0.5


async def watch_loop(tell: Callable[[float], None], every_s: float = EVERY_S) -> None:
    """Tells the lag in seconds, again and again, until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + every_s
        await asyncio.sleep(every_s)
        tell(max(0.0, loop.time() - due))
