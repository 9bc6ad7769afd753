"""Large requests are translated in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from proxy.core.messages import Event
from proxy.providers.contract import Call

T = TypeVar("T")


def translated(
    call: Call, translate: Callable[[], T], answer: Callable[[T], AsyncGenerator[list[Event], None]]
) -> AsyncGenerator[list[Event], None]:
    """The answer to a call. Raises what `translate` raises, of a large request when the answer is asked for.

    translate  the request in the upstream's form: pure, since it may run in a thread
    answer     asks the upstream with that
    """
    # of a small one no generator of its own: each layer between an upstream and the writer costs every event
    return _in_thread(translate, answer) if call.large else answer(translate())


async def _in_thread(
    translate: Callable[[], T], answer: Callable[[T], AsyncGenerator[list[Event], None]]
) -> AsyncGenerator[list[Event], None]:
    async with aclosing(answer(await asyncio.to_thread(translate))) as batches:
        async for batch in batches:
            yield batch
