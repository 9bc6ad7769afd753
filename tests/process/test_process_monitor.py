"""`serve` with the monitor on a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from harness import ask, until
from processes import LISTENS, environment, start

#: What begins the other screen, leaves it, and shows the cursor.
ENTERED = b"\x1b[?1049h"
LEFT, CURSOR = b"\x1b[?1049l", b"\x1b[?25h"


class Terminal:
    """A terminal of 120 by 40 that a command runs on, as the program in its foreground."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.set_blocking(self.ours, False)
        self.modes = self.mode()
        self._said = b""

    def mode(self) -> list[object]:
        return termios.tcgetattr(self.theirs)

    def read(self) -> bytes:
        """All that was written to it."""
        with contextlib.suppress(OSError):  # nothing there now
            while more := os.read(self.ours, 65_536):
                self._said += more
        return self._said

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    @asynccontextmanager
    async def running(self, folder: Path, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
        place = os.ttyname(self.theirs)
        # A session of its own takes the first terminal that it opens as its own.
        script = f'exec "$@" <{place} >{place} 2>{place}'
        command = ("sh", "-c", script, "sh", sys.executable, "-m", "proxy", *words)
        env = environment(folder, TERM="xterm-256color", LC_ALL="C.UTF-8")
        process = await start(*command, env=env, start_new_session=True)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            os.close(self.ours)
            os.close(self.theirs)


async def test_serve_on_a_terminal_opens_the_monitor_and_gives_the_terminal_back(tmp_path: Path) -> None:
    terminal = Terminal()
    async with terminal.running(tmp_path, "serve", "--sandbox", "--port", "0") as process:
        await until(lambda: b"No active requests" in terminal.read(), 20)
        found = LISTENS.search(terminal.read())
        assert found is not None and terminal.mode() != terminal.modes
        assert b" SANDBOX " in terminal.read().partition(ENTERED)[2]
        url = found[1].decode()
        async with aiohttp.ClientSession() as client:
            async with client.post(f"{url}/v1/messages", json=ask(model="gpt-5.5")) as answer:
                assert answer.status == 200
            async with client.get(f"{url}/monitor") as answer:
                assert (await answer.json())["snapshot"]["sandbox"] is True
        await until(lambda: re.search(rb"gpt-5\.5", terminal.read().split(b"No active requests")[-1]) is not None, 5)
        terminal.type(b"q")
        terminal.type(b"y")
        assert await asyncio.wait_for(process.wait(), 15) == 0
        said = terminal.read()
        assert said.rfind(LEFT) > said.rfind(b"gpt-5.5") and said.rfind(CURSOR) > 0
        assert terminal.mode() == terminal.modes
