"""The monitor on a terminal, in a thread of its own: a slow terminal, or one stopped with Ctrl-S, blocks nothing
else."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from proxy.observe.monitor.snapshot import Snapshot
from proxy.observe.monitor.terminal.cells import Line
from proxy.observe.monitor.terminal.history_reader import Ask, HistoryReader
from proxy.observe.monitor.terminal.keys import Stage, pressed
from proxy.observe.monitor.terminal.screen import screen
from proxy.observe.monitor.terminal.view import ShownHistory, View

#: Seconds between two frames; a key draws one at once.
REDRAW_S = 0.25
#: The same while the history is being read.
READING_S = 0.05
#: Seconds that `close` waits for the thread; one that writes to a stopped terminal is abandoned.
JOIN_S = 2.0


class Surface(Protocol):
    """The surface to draw on: `display.Display`, or a test's."""

    def size(self) -> tuple[int, int]: ...
    def draw(self, lines: Sequence[Line]) -> None: ...
    def keys(self, wake: int, timeout: float) -> list[str]: ...
    def suspend(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...
    def give_back(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ShownSnapshot:
    """A snapshot to show, and the fault of the connection."""

    snapshot: Snapshot
    note: str = ""


class Watcher:
    """look      returns what to show, called on the thread of the watcher
    quit      called there when the user quits, and when the monitor fails
    surface   opens the terminal
    history   asks for the history, called on the thread of the watcher, too; None: there is none
    ours      whether the terminal may be touched now
    """

    def __init__(
        self,
        look: Callable[[], ShownSnapshot],
        quit: Callable[[], None],
        surface: Callable[[], Surface],
        *,
        view: View,
        history: Ask | None = None,
        ours: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._look, self._quit, self._open, self._ours, self._clock = look, quit, surface, ours, clock
        self._view = view
        self._history = None if history is None else HistoryReader(history)
        self._surface: Surface | None = None
        self._thread: threading.Thread | None = None
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._pausing = self._ending = False
        self.error: Exception | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="proxy-monitor", daemon=True)
        self._thread.start()

    def stopping(self) -> None:
        """Shows from now on that the proxy ends."""
        self._view = replace(self._view, stopping=True)
        self._wake()

    def pause(self) -> None:
        """Ctrl-Z: gives the terminal back and stops the process; goes on when it is in the foreground again."""
        self._pausing = True
        self._wake()

    def close(self) -> None:
        """Gives the terminal back. Waits at most JOIN_S."""
        self._ending = True
        self._wake()
        if self._thread is not None:
            self._thread.join(JOIN_S)
        self.give_back()
        if self._thread is None or not self._thread.is_alive():
            os.close(self._read)
            os.close(self._write)
            self._thread = None

    def give_back(self) -> None:
        """Gives the terminal back at once, from any thread, when the process ends now."""
        if self._surface is not None:
            self._surface.give_back()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it wakes anyway
            os.write(self._write, b"x")

    # On the thread.

    def _run(self) -> None:
        """A terminal that cannot be taken is a failure like any other."""
        try:
            self._surface = self._open()
            while not self._ending:
                self._turn(self._surface)
        except Exception as error:
            self.error = error
            self._quit()
        finally:
            if self._surface is not None:
                with contextlib.suppress(Exception):
                    self._surface.close()

    def _turn(self, surface: Surface) -> None:
        """Draws a frame, and handles the keys until the next one."""
        seen, now = self._look(), self._clock()
        width, height = surface.size()
        history = self._shown_history(now)
        view = replace(self._view, note=seen.note, history=history)
        surface.draw(screen(seen.snapshot, view, width, height, now))
        for key in surface.keys(self._read, READING_S if history.asking else REDRAW_S):
            self._press(key, history, Stage(seen.snapshot, width, height, now))
        self._drain()
        if self._pausing:
            self._paused(surface)

    def _shown_history(self, now: float) -> ShownHistory:
        if "history" not in self._view.overlays:
            return ShownHistory()
        if self._history is None:
            return ShownHistory(problem="There is no history here.")
        return self._history.shown(self._view.time, now)

    def _press(self, key: str, history: ShownHistory, stage: Stage) -> None:
        view, wish = pressed(replace(self._view, history=history), key, stage)
        self._view = replace(view, stopping=view.stopping or self._view.stopping)
        if wish == "quit":
            self._quit()

    def _drain(self) -> None:
        os.set_blocking(self._read, False)
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 4_096)

    def _paused(self, surface: Surface) -> None:
        self._pausing = False
        surface.suspend()
        # To this thread, so that it stops here; the process might stop a little later.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        while not self._ours() and not self._ending:  # it went on in the background
            time.sleep(REDRAW_S)
        if not self._ending:
            surface.resume()
