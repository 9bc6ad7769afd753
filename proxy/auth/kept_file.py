"""A private file that follows values in memory, such as allowances or the use by callers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from proxy.observe.lifecycle import Log


@dataclass(slots=True)
class KeptFile:
    """Writes the file some seconds after a change, and at the end.

    path     None if nothing is kept
    name     what the log calls the values: `allowances`
    every_s  seconds between two writes, at least
    writer   returns the function that writes the file with the values of now, for a thread. That may raise OSError
    """

    path: Path | None
    name: str
    every_s: float
    writer: Callable[[Path], Callable[[], None]]
    log: Log
    sleep: Callable[[float], Awaitable[None]]
    _saving: asyncio.Task[None] | None = field(default=None, init=False)
    _writing: asyncio.Future[None] | None = field(default=None, init=False)
    _changed: bool = field(default=False, init=False)
    _failed: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)

    def changed(self) -> None:
        """Has the file written soon."""
        self._changed = self.path is not None
        if self._changed and not self._closed and (self._saving is None or self._saving.done()):
            self._saving = asyncio.create_task(self._save_changes())

    async def close(self) -> None:
        """Writes unwritten changes."""
        self._closed = True
        if self._saving is not None:
            self._saving.cancel()
            await asyncio.wait({self._saving})
        if self._writing is not None and not self._writing.done():
            await asyncio.wait({self._writing})  # otherwise the older version might be written last
        if self._changed:
            await self._save()

    async def _save_changes(self) -> None:
        while self._changed:
            await self.sleep(self.every_s)
            await self._save()

    async def _save(self) -> None:
        if self.path is None:
            return
        self._changed = False
        try:
            self._writing = asyncio.ensure_future(asyncio.to_thread(self.writer(self.path)))
            await asyncio.shield(self._writing)
            self._failed = False
        except OSError as error:
            if not self._failed:  # a full disk is reported once
                reason = type(error).__name__
                self.log.write("warn", self.name, f"{self.name}_not_kept", file=str(self.path), error=reason)
            self._failed = True
