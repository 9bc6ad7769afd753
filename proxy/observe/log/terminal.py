"""The copy of the log on the terminal."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TextIO

#: Levels that are always shown.
LOUD = frozenset({"warn", "error"})


class TerminalCopy:
    """Writes lines to `stream` (stderr when None): warnings and errors, or with `everything` all of them."""

    def __init__(self, stream: TextIO | None, *, everything: bool) -> None:
        self._stream = stream
        self._everything = everything
        self._suppressed = 0
        self._lock = threading.Lock()

    def suppress(self, change: int) -> None:
        """Waits for a line being shown, but for no longer than a second: a terminal may be stuck."""
        held = self._lock.acquire(timeout=1.0)
        self._suppressed += change
        if held:
            self._lock.release()

    def show(self, lines: list[tuple[str, str]]) -> None:
        """Lines as (level, text with its line end)."""
        text = "".join(line for level, line in lines if self._everything or level in LOUD)
        if not text:
            return
        with self._lock:
            stream = self._stream or sys.stderr
            if self._suppressed or stream is None:
                return
            with suppress(Exception):  # closed, broken pipe, an encoding that lacks a character
                stream.write(text)
                stream.flush()
