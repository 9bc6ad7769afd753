"""Limits what is served at one time, and ends what is running when the proxy stops.

There is no queue: what does not fit is refused, and may come back in a second.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from proxy.config import Config
from proxy.errors import BusyError, ProxyError

#: Kind of the limit of each provider.
PROVIDER = "provider"
#: Kind of the limit of memory for request bodies.
MEMORY = "memory"


class AdmissionTicket:
    """The resources of one request; leaving the `with` block releases everything."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._taken: list[str] = []
        self._bytes = 0

    def take(self, name: str, limit: int, what: str) -> None:
        """Counts one more request under `name`. Raises BusyError (429, Retry-After 1)."""
        counts = self._admission.counts
        if counts[name] >= limit:
            self._admission.refused[name.partition(" ")[0]] += 1
            raise BusyError(f"busy: {limit} requests at a time are served {what}; try again in a second", retry_after=1)
        counts[name] += 1
        self._taken.append(name)

    def leave(self, kind: str) -> None:
        """Releases what was taken under names of a kind."""
        left = [name for name in self._taken if name.partition(" ")[0] == kind]
        self._taken = [name for name in self._taken if name not in left]
        self._give_back(left)

    def leave_all(self) -> None:
        """Releases all but the memory of the body."""
        left, self._taken = self._taken, []
        self._give_back(left)

    def _give_back(self, names: list[str]) -> None:
        counts = self._admission.counts
        for name in names:
            counts[name] -= 1
            if not counts[name]:
                del counts[name]

    def hold(self, size: int) -> None:
        """Sets the memory of the request's body to `size` bytes. Raises BusyError."""
        limit, more = self._admission.config().max_buffered_bytes, size - self._bytes
        if more > 0 and self._admission.bytes + more > limit:
            self._admission.refused[MEMORY] += 1
            raise BusyError(
                f"busy: request bodies of {limit} bytes in all are held; try again in a second", retry_after=1
            )
        self._admission.bytes += more
        self._bytes = size

    def __enter__(self) -> AdmissionTicket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._taken:
            self.leave_all()
        self.hold(0)


class Admission:
    """The counters of one application."""

    def __init__(self, config: Callable[[], Config]) -> None:
        self.config = config
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()  # by the kind of limit, since the start
        self.bytes = 0

    def enter(self, ticket: AdmissionTicket, session: str | None) -> None:
        """Takes a place of the session, then one of all. Raises BusyError."""
        config = self.config()
        if session is not None:
            ticket.take(f"session {session}", config.max_concurrent_per_session, "for one session")
        ticket.take("all", config.max_concurrent, "in all")

    def select(self, ticket: AdmissionTicket, label: str) -> None:
        """Takes a place of the provider, which is known only after routing. Raises BusyError."""
        ticket.take(f"{PROVIDER} {label}", self.config().max_concurrent_per_provider, f"by {label}")

    def fits(self, label: str, size: int) -> bool:
        """Whether one more request with a body of `size` bytes fits: to ask first counts no refusal.

        label  the provider, "" for a request that has its place
        """
        config = self.config()
        free = not label or self.counts[f"{PROVIDER} {label}"] < config.max_concurrent_per_provider
        return free and self.bytes + size <= config.max_buffered_bytes


#: Turns of the event loop from the bytes of a request to its task.
_TURNS = 3


class Running:
    """The tasks of model requests of one application.

    draining  whether the end was announced: requests are still served, over connections that end after them
    cut       number of answers that a shutdown ended
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._cut: set[asyncio.Task[Any]] = set()
        self.draining = False
        self.cut = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Counts the current task as one that serves a request, while inside."""
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
        """Waits at most `limit_s` for running and new requests, and cuts the rest."""
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
        """The error for the client whose request, the current task, was just cut; None if it was cancelled otherwise.
        The cancellation is taken back for that, once."""
        task = asyncio.current_task()
        if task is None or task not in self._cut:
            return None
        self._cut.discard(task)
        if task.uncancel():
            return None
        return ProxyError(
            "the proxy stopped before this answer was complete; send the request again", kind="stopping", retry_after=1
        )
