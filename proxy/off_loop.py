"""Keeps long work off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from proxy.later import Later

T = TypeVar("T")


async def in_thread_if(long: bool, work: Callable[[], T]) -> T:
    """The result of `work`, from a thread if it is long: mostly, if it is on more than `core.sizes.LARGE_BYTES`."""
    return await asyncio.to_thread(work) if long else work()


async def imported(function: Later) -> Any:
    """The function itself; its module is imported in a thread, in which others have their turn every 5 ms."""
    return await in_thread_if(not function.loaded, function.load)
