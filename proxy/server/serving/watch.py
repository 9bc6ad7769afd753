"""The watch over clients that leave, or read nothing, while they are answered.

By a timer, a client that left ends the work within a second, and a long silence is filled, so that no middlebox gives
up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Protocol

from proxy.errors import ProxyError
from proxy.server.request.ledger import Ledger
from proxy.server.request.replies import as_proxy_error, is_loss, unforeseen


class Watched(Protocol):
    """A writer of an answer, as the watch sees it.

    complete  whether the whole answer was sent
    stalled   whether the client has read nothing of what is being written for too long
    silent    whether `fill` must be called
    """

    complete: bool

    @property
    def stalled(self) -> bool: ...

    @property
    def silent(self) -> bool: ...

    async def fill(self) -> None: ...


def watched(ledger: Ledger, writer: Watched | None = None) -> AbstractAsyncContextManager[None]:
    """While inside, a client that leaves cancels the current task within a second, in any runner; and `writer` fills
    silences. Raises a failure of that as a ProxyError. Work that goes on after the whole answer was sent is ended
    without an error, since the connection may already have the client's next request."""
    return _Watch(ledger, writer)


class _Watch:
    """Cancels the work once the client is gone, or reads nothing any more, or has had the whole answer for a while. A
    failure while filling a silence cancels it too, and is kept in `_error`, which the cancellation becomes. `_enough`:
    whether it was cancelled only because of the whole answer.

    It uses a timer, and a task only to fill a silence: most answers end before the timer is set again. It is a class,
    since the frame of a generator would hold the cancellation, and that the frame, until garbage is collected."""

    def __init__(self, ledger: Ledger, writer: Watched | None) -> None:
        self._ledger = ledger
        self._writer = writer
        self._timers = ledger.inquiry.state.timers
        self._filling: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._complete = False  # whether the answer was complete at the last check
        self._error: ProxyError | None = None
        self._enough = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("not in a task")
        self._work = task
        self._timer = self._loop.call_later(self._timers.tick, self._look)

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        del _error, _trace
        try:
            return kind is not None and issubclass(kind, asyncio.CancelledError) and self._is_over()
        finally:
            await self.close()

    def _is_over(self) -> bool:
        """Whether the cancellation was because of the whole answer, and ends here. Raises the ProxyError that it
        represents."""
        known = self._error
        if not (known or self._enough):
            known = self._ledger.inquiry.state.running.stopped()
            if known is None:  # the client left
                return False
        elif self._work.uncancel():  # it was cancelled by others as well
            return False
        if known is not None:
            raise known from None
        return True

    async def close(self) -> None:
        self._timer.cancel()
        if self._filling is not None and not self._filling.done():
            self._filling.cancel()
            await asyncio.wait({self._filling})  # awaiting it would swallow a cancellation of our own

    def _look(self) -> None:
        writer = self._writer
        if self._ledger.inquiry.left:
            self._cancel()
        elif writer is not None and writer.stalled:
            self._ledger.break_off()  # closing would wait until the client reads what is written
            self._cancel()
        elif self._complete:
            self._enough = self._cancel()
        elif writer is not None and writer.silent:
            self._filling = self._loop.create_task(self._fill(writer))
        else:
            self._complete = writer is not None and writer.complete
            self._timer = self._loop.call_later(self._timers.tick, self._look)

    async def _fill(self, writer: Watched) -> None:
        try:
            async with asyncio.timeout(self._timers.stall) as limit:
                await writer.fill()
        except Exception as error:
            lost = limit.expired() or is_loss(error, self._ledger.inquiry.request)
            if lost:
                self._ledger.break_off()
                self._cancel()
                return
            inquiry = self._ledger.inquiry
            known = as_proxy_error(error) or unforeseen(inquiry.state.log, inquiry.id, error)
            if self._cancel():
                self._error = known
        else:
            self._timer = self._loop.call_later(self._timers.tick, self._look)

    def _cancel(self) -> bool:
        """Cancels the work, unless the runner did: a second cancellation would interrupt the clean-up. Returns whether
        it was us."""
        return not self._work.cancelling() and self._work.cancel()


@asynccontextmanager
async def reading_client(ledger: Ledger) -> AsyncIterator[None]:
    """While inside, gives up a client that reads nothing for long. Raises ConnectionResetError."""
    try:
        async with asyncio.timeout(ledger.inquiry.state.timers.stall):
            yield
    except TimeoutError:
        ledger.abandoned()
        ledger.break_off()
        raise ConnectionResetError("the client reads nothing") from None
