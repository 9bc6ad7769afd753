"""The thread that draws: what it does with keys, failures and signals, on a terminal that remembers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import pytest

from proxy.observe.monitor.terminal import watcher as watching
from proxy.observe.monitor.terminal.cells import Line
from proxy.observe.monitor.terminal.view import View
from proxy.observe.monitor.terminal.watcher import ShownSnapshot, Watcher

from .shown import NOW, SNAPSHOT, text_of


class Remembering:
    """A terminal of 80 by 24. `typed` is what comes from the keyboard, a list a picture, or what makes one; then
    nothing more comes."""

    def __init__(self, typed: Sequence[list[str] | Callable[[], list[str]] | Exception] = ()) -> None:
        self.typed = list(typed)
        self.pictures: list[list[str]] = []
        self.did: list[str] = []
        self.quiet = threading.Event()
        self.more = threading.Event()

    def size(self) -> tuple[int, int]:
        return 80, 24

    def draw(self, lines: Sequence[Line]) -> None:
        self.pictures.append(text_of(lines))

    def keys(self, wake: int, timeout: float) -> list[str]:
        if not self.typed:
            self.quiet.set()
            self.more.wait(5)
            return []
        keys = self.typed.pop(0)
        if isinstance(keys, Exception):
            raise keys
        return keys() if callable(keys) else keys

    def suspend(self) -> None:
        self.did.append("suspend")

    def resume(self) -> None:
        self.did.append("resume")

    def close(self) -> None:
        self.did.append("close")

    def give_back(self) -> None:
        self.did.append("give back")


class Watched:
    """A watcher on such a terminal, and how often it wanted to end."""

    def __init__(self, surface: Remembering, **more: object) -> None:
        self.surface = surface
        self.quits = 0
        self.watcher = Watcher(
            lambda: ShownSnapshot(SNAPSHOT, "gone"), self._quit, lambda: surface, view=View(), clock=lambda: NOW, **more
        )  # type: ignore[arg-type]

    def _quit(self) -> None:
        self.quits += 1
        self.surface.quiet.set()

    def run(self) -> Watched:
        self.watcher.start()
        assert self.surface.quiet.wait(5)
        return self

    def close(self) -> None:
        self.surface.more.set()
        self.watcher.close()


def test_keys_are_drawn_and_the_terminal_is_given_back() -> None:
    watched = Watched(Remembering([["?"], ["escape"]])).run()
    watched.close()
    first, second, third = watched.surface.pictures[:3]
    assert "Shortcuts" not in "".join(first + third) and "Shortcuts" in "".join(second)
    assert "gone" in first[0]
    assert watched.quits == 0 and watched.watcher.error is None
    assert watched.surface.did == ["close", "give back"]


def test_the_history_is_asked_for_when_it_is_open_and_drawn_when_it_comes() -> None:
    asked: list[tuple[Sequence[float], Future[object]]] = []

    def ask(edges: Sequence[float]) -> Future[object]:
        asked.append((edges, Future()))
        return asked[-1][1]

    def answered() -> list[str]:
        usage = {"requests": 4_321}
        asked[0][1].set_result({"version": 1, "edges": [0, 1], "whole": usage, "periods": [usage]})
        return []

    watched = Watched(Remembering([["?"], ["escape", "h"], answered, ["end"], ["3"]]), history=ask).run()
    watched.close()
    pictures = ["".join(picture) for picture in watched.surface.pictures]
    assert ["Reading the history" in one for one in pictures[:6]] == [False, False, True, False, False, True]
    assert ["4,321" in one for one in pictures[:5]] == [False, False, False, True, True]
    assert [len(edges) for edges, _ in asked] == [8, 31]


def test_a_monitor_without_a_history_says_so() -> None:
    watched = Watched(Remembering([["h"]])).run()
    watched.close()
    assert "There is no history here." in "".join(watched.surface.pictures[1])


def test_who_confirms_ends_it() -> None:
    watched = Watched(Remembering([["q", "y"]])).run()
    watched.watcher.stopping()
    watched.close()
    assert watched.quits == 1


@pytest.mark.parametrize("error", [RuntimeError("a fault"), EOFError("the terminal was closed")])
def test_a_failure_ends_it_and_gives_the_terminal_back(error: Exception) -> None:
    watched = Watched(Remembering([error])).run()
    watched.close()
    assert (watched.quits, watched.watcher.error) == (1, error)
    assert watched.surface.did[0] == "close"


def test_a_terminal_that_cannot_be_taken_is_such_a_failure() -> None:
    quits: list[bool] = []

    def refuse() -> Remembering:
        raise RuntimeError("no terminal")

    watcher = Watcher(lambda: ShownSnapshot(SNAPSHOT), lambda: quits.append(True), refuse, view=View())
    watcher.start()
    watcher.close()
    assert quits and str(watcher.error) == "no terminal"


def test_ctrl_z_gives_the_terminal_away_until_it_is_ours_again(monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[int] = []
    ours = iter([False, False, True])
    monkeypatch.setattr(watching.signal, "pthread_kill", lambda _thread, number: signals.append(number))
    monkeypatch.setattr(watching.time, "sleep", lambda _seconds: None)
    watched = Watched(Remembering([[]]), ours=lambda: next(ours))
    watched.watcher.pause()
    watched.run().close()
    assert signals == [signal.SIGSTOP]
    assert watched.surface.did == ["suspend", "resume", "close", "give back"]


#: A process whose watcher is paused again and again; it writes a sign for each thing that happens to its terminal.
_PAUSED_OFTEN = """
import os, threading
from proxy.observe.monitor.terminal.watcher import Watcher

class Surface:
    suspend = lambda self: os.write(1, b"s")
    resume = lambda self: os.write(1, b"r")

watcher = Watcher(None, None, None, view=None)
thread = threading.Thread(target=lambda: [watcher._paused(Surface()) for _ in range(30)])
thread.start()
while thread.is_alive():
    pass
"""


def test_nothing_is_done_to_the_terminal_before_the_process_is_stopped() -> None:
    """What is drawn between would be drawn on the shell's screen."""
    with subprocess.Popen([sys.executable, "-c", _PAUSED_OFTEN], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        seen = []
        while os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1]):
            seen.append(os.read(process.stdout.fileno(), 100))
            process.send_signal(signal.SIGCONT)
        process.returncode = 0
    assert seen == [b"s", *[b"rs"] * 29]
