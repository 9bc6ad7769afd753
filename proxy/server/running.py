"""Requests that are being served, so that a shutdown can wait for them and knows what it cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Running answers may finish for this long once the application shuts down.
DRAIN_S = 10.0


class Running:
    """The tasks of model requests of one application. `cut` counts those that a shutdown ended."""

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

    async def drain(self) -> None:
        """Waits for what runs, at most DRAIN_S, and cuts the rest."""
        tasks = set(self._tasks)
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=DRAIN_S)
            self.draining = True
            self.cut = len(left)
            for task in left:
                task.cancel()
