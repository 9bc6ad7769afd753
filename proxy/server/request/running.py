"""Requests that are being served, so that a shutdown can wait for them and knows what it cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from proxy.errors import ProxyError

#: Turns of the loop from the bytes of a request to its task.
_TURNS = 3


class Running:
    """The tasks of model requests of one application.

    draining  the end was announced: what still comes is served, over connections that end with it
    cut       how many answers a shutdown ended
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._cut: set[asyncio.Task[Any]] = set()
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
            self._cut.discard(task)

    async def drain(self, limit_s: float) -> None:
        """Waits for what runs and what still comes, so long at most, and cuts the rest."""
        self.draining = True
        loop = asyncio.get_running_loop()
        end = loop.time() + limit_s
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        while self._tasks and (left := end - loop.time()) > 0:
            await asyncio.wait(self._tasks, timeout=left)
        self._cut = set(self._tasks)
        self.cut = len(self._cut)
        for task in self._cut:
            task.cancel()

    def stopped(self) -> ProxyError | None:
        """What the client is told whose request, the current task, was just cut; None when somebody else cancelled it.
        The cancellation is taken back for that, once."""
        task = asyncio.current_task()
        if task is None or task not in self._cut:
            return None
        self._cut.discard(task)
        if task.uncancel():
            return None
        return ProxyError(
            "the proxy is stopped before this answer was whole; send it again", kind="stopping", retry_after=1
        )
