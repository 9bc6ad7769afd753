"""The monitor on the whole terminal: whether there is one, and the time that it is taken."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from proxy.cli.signals import Stop

if TYPE_CHECKING:
    from proxy.observe.monitor.snapshot import Snapshot
    from proxy.observe.monitor.terminal.view import View
    from proxy.observe.monitor.terminal.watcher import Seen, Watcher

#: A loop that is busy for longer than this shows what it showed before.
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
    """Snapshots for another thread; they are made on the event loop, to which the store belongs."""

    def __init__(self, make: Callable[[], Snapshot]) -> None:
        self._make = make
        self._last = make()
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> Seen:
        from proxy.observe.monitor.terminal.watcher import Seen

        answer: Future[Snapshot] = Future()
        with contextlib.suppress(TimeoutError, RuntimeError):  # a busy loop, one that ended
            self._loop.call_soon_threadsafe(self._told, answer)
            self._last = answer.result(WAIT_S)
        return Seen(self._last)

    def _told(self, answer: Future[Snapshot]) -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(self._make())
            except Exception as error:
                answer.set_exception(error)


@asynccontextmanager
async def full_screen(
    environment: Mapping[str, str], look: Callable[[], Seen], view: View, stop: Stop
) -> AsyncIterator[Watcher]:
    """The terminal is the monitor's inside. `stop` is set when the user wants to end, when the terminal is closed, and
    when the monitor fails: `Watcher.error` has it then."""
    from proxy.observe.monitor.terminal.display import Display, in_foreground
    from proxy.observe.monitor.terminal.watcher import Watcher

    loop = asyncio.get_running_loop()

    def ended() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(stop.set)

    watcher = Watcher(look, ended, lambda: Display(environment), view=view, ours=in_foreground)
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
