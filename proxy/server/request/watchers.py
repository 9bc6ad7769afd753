"""Those who follow what goes on, and what all of them are sent: one snapshot, made when somebody is there and
something changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from proxy.errors import BusyError
from proxy.observe.monitor.encoding import SnapshotEncoder
from proxy.observe.monitor.snapshot import Snapshot
from proxy.observe.monitor.state import MonitorState

#: Pages and programs that follow at the same time: more windows than somebody looks at.
MAX_WATCHERS = 16
#: How often one of them is sent something new, in seconds.
EVERY_S = 1.0


class Watchers:
    """Of one application."""

    def __init__(self) -> None:
        self._encoder = SnapshotEncoder()
        self._encoding = asyncio.Lock()
        self._closing = asyncio.Event()
        self._there = 0
        self._newest: tuple[int, bytes] = 0, b""
        self._made_at = 0.0
        self._mark: object = None

    @contextmanager
    def one(self, monitor: MonitorState) -> Iterator[None]:
        """Somebody follows while inside. Raises BusyError when too many do."""
        if self._there >= MAX_WATCHERS:
            raise BusyError(f"{MAX_WATCHERS} pages or programs follow the monitor already; close one")
        self._there += 1
        try:
            with monitor.watch():
                yield
        finally:
            self._there -= 1

    @property
    def closed(self) -> bool:
        return self._closing.is_set()

    def close(self) -> None:
        """Everybody stops following, at once."""
        self._closing.set()

    async def pause(self) -> None:
        """Until there may be something new, or the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVERY_S):
                await self._closing.wait()

    async def newest(self, monitor: MonitorState) -> tuple[int, bytes]:
        """A snapshot that is the same for all who follow, at most so old as one of them waits, and its number: it has
        another number when it shows something else."""
        async with self._encoding:
            now = asyncio.get_running_loop().time()
            if not self._newest[0] or now - self._made_at >= 0.9 * EVERY_S:
                mark = monitor.mark()
                if mark != self._mark or not self._newest[0]:
                    self._mark = mark
                    self._newest = self._newest[0] + 1, await self._encode(monitor.snapshot())
                self._made_at = now
            return self._newest

    async def encoded(self, snapshot: Snapshot) -> bytes:
        async with self._encoding:
            return await self._encode(snapshot)

    async def _encode(self, snapshot: Snapshot) -> bytes:
        """Not on the loop: a thousand sessions take some milliseconds."""
        return await asyncio.to_thread(self._encoder.encode, snapshot)
