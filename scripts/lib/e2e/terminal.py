"""A client on a terminal of its own: what it is typed, and what of its output came. Nothing draws a screen: scenarios
look at what reaches the upstream."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ESCAPE = "\x1b"
ROWS, COLUMNS = 40, 120

#: Between a text and the key that sends it: keys that come at once are taken for a paste.
TYPING_S = 0.4
WAIT_S = 15.0


class Terminal:
    """`read` takes what the client printed; `output` is that, with its control characters."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = 0
        self.output = b""

    def read(self) -> None:
        with contextlib.suppress(OSError):  # its other end is closed
            self.output += os.read(self._descriptor, 65_536)

    async def shows(self, word: str) -> None:
        """Waits until the client printed the word, anew since the last time. Raises AssertionError."""
        await until(lambda: self.output.find(word.encode(), self._seen) >= 0, f"the screen shows {word!r}")
        self._seen = len(self.output)

    def press(self, key: str) -> None:
        os.write(self._descriptor, key.encode())

    async def say(self, text: str) -> None:
        """Types a text and sends it."""
        self.press(text)
        await asyncio.sleep(TYPING_S)
        self.press("\r")


@asynccontextmanager
async def on_terminal(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> AsyncIterator[Terminal]:
    """The program on a new terminal; it is ended by its id."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    loop, terminal = asyncio.get_running_loop(), Terminal(ours)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        loop.add_reader(ours, terminal.read)
        try:
            yield terminal
        finally:
            loop.remove_reader(ours)
            if process.returncode is None:
                process.kill()
            await process.wait()
    finally:
        os.close(ours)


async def until(condition: Callable[[], Any], what: str, seconds: float = WAIT_S) -> None:
    """Waits for it. Raises AssertionError with the words in `what`."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{what}: not within {seconds} s") from None
