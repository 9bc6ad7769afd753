"""Requests that are being served, so that a shutdown can wait for them and knows what it cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Running:
    """The tasks of model requests of one application.

    draining  the end was announced: what still comes is served, over connections that end with it
    cut       how many answers a shutdown ended
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.draining = False
        self.cut = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """The current task serves a request while inside."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("not in a task")
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)

    async def drain(self, limit_s: float) -> None:
        """Waits for what runs, so long at most, and cuts the rest."""
        self.draining = True
        tasks = set(self._tasks)
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=limit_s)
            self.cut = len(left)
            for task in left:
                task.cancel()
