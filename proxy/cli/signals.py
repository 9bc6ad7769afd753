"""SIGINT and SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable


class Stop(asyncio.Event):
    """Is set by the first signal. `before_exit` is called when a second signal ends the process at once."""

    def __init__(self) -> None:
        super().__init__()
        self.before_exit: Callable[[], None] = lambda: None


def stop_event() -> Stop:
    """Returns an event that the first SIGINT or SIGTERM sets; a second one ends the process at once."""
    stop, loop = Stop(), asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        if stop.is_set():
            stop.before_exit()
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, received, number)
        except NotImplementedError:  # Windows: Ctrl-C arrives as KeyboardInterrupt
            pass
    return stop
