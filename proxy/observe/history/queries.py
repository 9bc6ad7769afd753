"""Questions to the history from the event loop: in threads, a few at a time, and none that nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from proxy.errors import BusyError, ProxyError
from proxy.observe.history.problems import NewerHistory, problem_of
from proxy.observe.history.schema import reading

T = TypeVar("T")
Question = Callable[[sqlite3.Connection], T]

#: Seconds between two looks of a question that waits.
_LOOK_S = 0.5
#: Steps of SQLite's machine between two looks at whether to go on: about a millisecond.
_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class QueryBounds:
    """running    questions that are answered at a time: each takes a thread of those that all work off the loop shares
    waiting    questions that wait for that; more are refused
    longest_s  seconds until a question is given up, with its wait: one about 1,000,000 requests takes a fraction of one
    busy_s     seconds that it waits for another process
    """

    running: int = 2
    waiting: int = 8
    longest_s: float = 10.0
    busy_s: float = 1.0


class Queries:
    """The questions of one application."""

    def __init__(self, bounds: QueryBounds | None = None) -> None:
        self._bounds = bounds or QueryBounds()
        self._free = asyncio.Semaphore(self._bounds.running)
        self._waiting = 0

    async def ask(self, path: Path, question: Question[T], has_left: Callable[[], bool]) -> T:
        """The answer to a question about the file at `path`. Raises BusyError, ProxyError if the file cannot be read,
        or not in time, and ConnectionError if the client has left.

        has_left  whether nobody waits for the answer any more; called by the thread
        """
        query = _Query(path, question, has_left, time.monotonic() + self._bounds.longest_s, self._bounds.busy_s)
        if self._waiting >= self._bounds.waiting:
            raise BusyError("too many questions to the history wait already; ask again in a moment")
        self._waiting += 1
        try:
            await self._turn(query)
        finally:
            self._waiting -= 1
        running = asyncio.get_running_loop().run_in_executor(None, query.run)
        running.add_done_callback(self._over)
        try:
            return await asyncio.shield(running)
        finally:
            query.dropped.set()

    async def _turn(self, query: _Query[T]) -> None:
        """Waits until the question may begin. Raises as `ask`."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._free.acquire()
                    return
            if query.is_over():
                raise query.given_up()

    def _over(self, running: asyncio.Future[T]) -> None:
        """Lets the next question begin: when the thread has ended, which may be later than its client has left."""
        self._free.release()
        if not running.cancelled():
            running.exception()  # nobody may be there to see it


@dataclass(frozen=True, slots=True)
class _Query(Generic[T]):
    """One question, on a thread. `end`: when it is given up, by the monotonic clock; `busy_s` as in `QueryBounds`."""

    path: Path
    question: Question[T]
    has_left: Callable[[], bool]
    end: float
    busy_s: float
    dropped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> T:
        try:
            with reading(self.path, self.busy_s) as db:
                db.set_progress_handler(self.is_over, _STEPS)
                return self.question(db)
        except FileNotFoundError:
            raise _unreadable("there is none yet; it begins with the first request") from None
        except (sqlite3.Error, OSError, NewerHistory) as error:
            raise (self.given_up() if self.is_over() else _unreadable(problem_of(error))) from None

    def is_over(self) -> bool:
        """Whether nobody waits for the answer any more, or it takes too long."""
        return self._is_left() or time.monotonic() >= self.end

    def given_up(self) -> Exception:
        """The error of a question that is over."""
        if self._is_left():
            return ConnectionResetError("the client has left")
        return _unreadable("it took too long; ask for a shorter time, or again later")

    def _is_left(self) -> bool:
        return self.dropped.is_set() or self.has_left()


def _unreadable(problem: str) -> ProxyError:
    return ProxyError(f"the history cannot be read: {problem}", kind="unavailable")
