"""The monitor on the whole terminal: checks it, takes it, and gives it back; and `serve` beside the monitor."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TextIO

from proxy.cli.command import APP
from proxy.cli.monitor.histories import Read, of_application, on_loop
from proxy.cli.signals import Stop

if TYPE_CHECKING:
    from proxy.observe.monitor.snapshot import Snapshot
    from proxy.observe.monitor.terminal.view import View
    from proxy.observe.monitor.terminal.watcher import ShownSnapshot, Watcher
    from proxy.server.request.state import AppState


#: Seconds after which a busy loop's last snapshot is shown again.
WAIT_S = 0.2


def obstacle(environment: Mapping[str, str]) -> str:
    """Why the whole terminal cannot be drawn on; "" where it can."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return "this is no terminal"
    if environment.get("TERM", "") in ("", "dumb"):
        return "this terminal cannot place text (TERM)"
    try:
        from proxy.observe.monitor.terminal.display import check_terminal, in_foreground

        check_terminal()
    except ImportError:  # Windows
        return "this Python has no curses"
    except RuntimeError as error:
        return str(error)
    return "" if in_foreground() else "this runs in the background"


class LoopSnapshots:
    """Snapshots for another thread, made on the event loop, which owns the store."""

    def __init__(self, make: Callable[[], Snapshot]) -> None:
        self._make = make
        self._last = make()
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> ShownSnapshot:
        from proxy.observe.monitor.terminal.watcher import ShownSnapshot

        answer: Future[Snapshot] = Future()
        with contextlib.suppress(TimeoutError, RuntimeError):  # a busy loop, one that ended
            self._loop.call_soon_threadsafe(self._told, answer)
            self._last = answer.result(WAIT_S)
        return ShownSnapshot(self._last)

    def _told(self, answer: Future[Snapshot]) -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(self._make())
            except Exception as error:
                answer.set_exception(error)


@asynccontextmanager
async def full_screen(
    environment: Mapping[str, str], look: Callable[[], ShownSnapshot], history: Read, view: View, stop: Stop
) -> AsyncIterator[Watcher]:
    """Gives the terminal to the monitor while inside. `stop` is set when the user quits, when the terminal is closed,
    and when the monitor fails: `Watcher.error` has it then."""
    from proxy.observe.monitor.terminal.display import Display, in_foreground
    from proxy.observe.monitor.terminal.watcher import Watcher

    loop = asyncio.get_running_loop()

    def ended() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(stop.set)

    watcher = Watcher(
        look, ended, lambda: Display(environment), view=view, history=on_loop(history), ours=in_foreground
    )
    stop.before_exit = watcher.give_back
    # Before curses starts: it would stop the process in the middle of a drawing.
    loop.add_signal_handler(signal.SIGTSTP, watcher.pause)
    loop.add_signal_handler(signal.SIGHUP, stop.set)
    try:
        watcher.start()
        yield watcher
    finally:
        await asyncio.to_thread(watcher.close)
        loop.remove_signal_handler(signal.SIGTSTP)
        loop.remove_signal_handler(signal.SIGHUP)


#: Beginning of a sentence of the log: the time of day and two blanks.
_STAMP_WIDTH = 10
#: Parts of log messages that the monitor also gets directly, better worded.
_TOLD_ANYHOW = ": allowance low ("


class LogNotices:
    """Shows the log's warnings: as events while the monitor is on the terminal, else as lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.notice: Callable[[str, str], None] | None = None

    def write(self, text: str) -> int:
        """Takes whole lines, on the thread of the log."""
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
    state: AppState,
    notices: LogNotices,
    setup: str,
    drain: Callable[[], Awaitable[None]],
) -> None:
    """Shows the monitor until the end: `drain` ends the proxy, and what it does is still shown. A monitor that fails
    ends the proxy in the same way, and is reported afterwards."""
    from proxy.observe.monitor.terminal.view import View

    loop, monitor = asyncio.get_running_loop(), state.monitor

    def notice(level: str, message: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(monitor.notice, level, message)

    notices.notice = notice
    view = View(setup=tuple(setup.splitlines()))
    try:
        with monitor.watch():
            look = LoopSnapshots(monitor.snapshot)
            async with full_screen(environment, look, of_application(state), view, stop) as watcher:
                await stop.wait()
                watcher.stopping()
                await drain()
    finally:
        notices.notice = None
    if watcher.error is not None:
        with contextlib.suppress(OSError):  # the terminal is gone, perhaps
            print(f"{APP}: the monitor failed: {watcher.error!r}", file=sys.stderr)
