"""A client on a screen that is drawn, in tmux: what a user sees of it at a moment."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

ROWS, COLUMNS = 60, 160
#: Between a text and the key that sends it, and between two looks at the screen.
TYPING_S, LOOKING_S = 0.4, 0.2
WAIT_S = 60.0
#: How the line begins behind which the client shows what is typed, how much of that is compared, how often it is sent.
PROMPT, PROMPT_WIDTH, SENDING = "❯", 20, 5


class Screen:
    """`seen` has every picture of the screen that was looked at."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.seen: list[str] = []

    async def tmux(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *("tmux", "-L", self._socket, "-f", "/dev/null"),
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # that the server has ended
        )
        output, _ = await process.communicate()
        return output.decode(errors="replace")

    async def look(self) -> str:
        """What is on it now, with what was scrolled off."""
        picture = await self.tmux("capture-pane", "-p", "-J", "-S", "-500")
        self.seen.append(picture)
        return picture

    async def shows(self, word: str, times: int = 1) -> None:
        """Waits until it does, so many times. Raises AssertionError."""
        try:
            async with asyncio.timeout(WAIT_S):
                while (await self.look()).count(word) < times:
                    await asyncio.sleep(LOOKING_S)
        except TimeoutError:
            lines = [line for line in self.seen[-1].splitlines() if line.strip()]
            raise AssertionError(f"the screen shows {word!r}: not within {WAIT_S} s; it shows {lines[-30:]}") from None

    async def say(self, text: str) -> None:
        """Types a text and sends it. A client that is still at work may take the key for a further line."""
        await self.tmux("send-keys", "-l", text)
        for _ in range(SENDING):
            await asyncio.sleep(TYPING_S)
            await self.tmux("send-keys", "Enter")
            await asyncio.sleep(TYPING_S)
            _, _, typed = (await self.look()).rpartition(f"\n{PROMPT}")
            if text[:PROMPT_WIDTH] not in typed:
                return

    async def press(self, key: str) -> None:
        """Presses a key that tmux has a name for, or a letter."""
        await asyncio.sleep(TYPING_S)
        await self.tmux("send-keys", key)

    async def command(self, text: str) -> None:
        """Types a text and sends it, once: for a client whose prompt looks otherwise."""
        await self.tmux("send-keys", "-l", text)
        await asyncio.sleep(TYPING_S)
        await self.press("Enter")

    async def ends(self) -> None:
        """Waits until the program has ended by itself."""
        async with asyncio.timeout(WAIT_S):
            while await self.tmux("list-sessions"):
                await asyncio.sleep(LOOKING_S)


@asynccontextmanager
async def on_screen(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> AsyncIterator[Screen]:
    """The program in a tmux server of its own, which ends with it."""
    screen = Screen(f"e2e-{secrets.token_hex(4)}")
    size = ("-x", str(COLUMNS), "-y", str(ROWS))
    cleared = ("env", "-i", *(f"{name}={value}" for name, value in {**environment, "TERM": "tmux-256color"}.items()))
    await screen.tmux("new-session", "-d", *size, "-c", str(folder), "--", *cleared, *command)
    try:
        yield screen
    finally:
        await screen.tmux("kill-server")
