"""SIGINT and SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal


def stop_event() -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM; a second one ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, received, number)
        except NotImplementedError:  # Windows: Ctrl-C arrives as KeyboardInterrupt
            pass
    return stop
