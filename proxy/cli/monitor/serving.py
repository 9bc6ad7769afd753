"""`serve` with the monitor on the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TextIO

from proxy.cli.command import APP
from proxy.cli.monitor.full_screen import LoopSnapshots, full_screen
from proxy.cli.signals import Stop

if TYPE_CHECKING:
    from proxy.observe.monitor.state import MonitorState

#: How a sentence of the log begins: the time of day and two blanks.
_STAMP_WIDTH = 10
#: In what the monitor is told of directly, in better words, so that it would be there twice.
_TOLD_ANYHOW = ": allowance low ("


class LogNotices:
    """Where the log shows its warnings: while the monitor is on the terminal they are events there, else lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.notice: Callable[[str, str], None] | None = None

    def write(self, text: str) -> int:
        """Called on the thread of the log, with whole lines."""
        if self.notice is None:
            return self._stream.write(text)
        for line in text.splitlines():
            said = line[_STAMP_WIDTH:]
            level, _, message = said.partition(": ")
            if _TOLD_ANYHOW in message:
                continue
            self.notice("error" if level == "error" else "warn", message)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


async def watched(
    environment: Mapping[str, str],
    stop: Stop,
    monitor: MonitorState,
    notices: LogNotices,
    setup: str,
    drain: Callable[[], Awaitable[None]],
) -> None:
    """Shows the monitor until the end: `drain` ends the proxy, and what it does is still shown. A monitor that fails
    ends the proxy in the same way, and is told of afterwards."""
    from proxy.observe.monitor.terminal.view import View

    loop = asyncio.get_running_loop()

    def notice(level: str, message: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(monitor.notice, level, message)

    notices.notice = notice
    view = View(setup=tuple(setup.splitlines()))
    try:
        with monitor.watch():
            async with full_screen(environment, LoopSnapshots(monitor.snapshot), view, stop) as watcher:
                await stop.wait()
                watcher.stopping()
                await drain()
    finally:
        notices.notice = None
    if watcher.error is not None:
        with contextlib.suppress(OSError):  # the terminal is gone, perhaps
            print(f"{APP}: the monitor failed: {watcher.error!r}", file=sys.stderr)
