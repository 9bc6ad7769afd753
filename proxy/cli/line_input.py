"""Lines that the user types or pastes, without an echo: what is pasted may be a secret, and a terminal may be recorded
(`docker logs` has all that the terminal of a container showed)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from threading import Thread

#: Of one line; the rest of a longer one is dropped.
MAX_LINE_BYTES = 64 * 1024


class LineInput:
    """`with LineInput() as lines: await lines.read()`. A thread of its own waits for the input, one that ends with the
    process: Ctrl-C and a limit of time work while nobody types."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._silence = contextlib.ExitStack()

    def __enter__(self) -> LineInput:
        self._silence.enter_context(_without_echo(self._descriptor))
        Thread(target=self._wait, args=(asyncio.get_running_loop(),), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._silence.close()

    async def read(self) -> str | None:
        """The next line without its end, None at the end of the input."""
        line = await self._lines.get()
        return None if line is None else line.decode(errors="replace")

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for lines any more
            for line in self._from_input():
                loop.call_soon_threadsafe(self._lines.put_nowait, line)

    def _from_input(self) -> Iterator[bytes | None]:
        rest = b""
        while piece := self._piece():
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
            rest = rest[:MAX_LINE_BYTES]
        yield from (rest, None) if rest else (None,)

    def _piece(self) -> bytes:
        try:
            return os.read(self._descriptor, 4096)
        except OSError:  # the terminal was closed
            return b""


@contextlib.contextmanager
def _without_echo(descriptor: int) -> Iterator[None]:
    """The terminal shows nothing of what is typed, and does again afterwards. Elsewhere than on a terminal of a POSIX
    system, nothing."""
    if not os.isatty(descriptor) or os.name != "posix":
        yield
        return
    import termios

    before = termios.tcgetattr(descriptor)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
