"""The monitor on a real terminal, in tmux, as somebody sees it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp

from e2e.expecting import Scenarios, expect
from e2e.screen import Screen, on_screen


class Screens(NamedTuple):
    """Whoever looks, with tmux."""

    tmux: Path
    version: str
    folder: Path


async def install(_version: str, _cache: Path) -> Path:
    """tmux is a package of the system."""
    return Path(shutil.which("tmux") or "")


SCENARIOS: Scenarios[Screens] = Scenarios()
VERSIONS = ("monitor",)

_URL = re.compile(r"http://127\.0\.0\.1:\d+")
#: Before the program and after it: the modes of the terminal, which it has to leave as they were.
_SHELL = 'stty -a | tail -n +2 > before; "$@"; echo "status $?"; stty -a | tail -n +2 > after; echo ended; sleep 60'


def _command(*words: str) -> tuple[str, ...]:
    return ("sh", "-c", _SHELL, "sh", sys.executable, "-m", "proxy", *words)


def _environment(folder: Path, **more: str) -> dict[str, str]:
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
    return {**own, "PATH": os.environ["PATH"], "PYTHONPATH": os.environ["PYTHONPATH"], "LANG": "C.UTF-8", **more}


@asynccontextmanager
async def _served(
    *command: str, environment: Mapping[str, str]
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A proxy without a terminal, and its address."""
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    try:
        line = await process.stdout.readline() if process.stdout else b""
        found = _URL.search(line.decode())
        expect(found, "the proxy listens", line)
        yield process, found[0] if found else ""
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _ask(url: str) -> None:
    body = {"model": "gpt-5.5", "max_tokens": 64, "messages": [{"role": "user", "content": "hello"}]}
    headers = {"x-claude-code-session-id": "from-outside"}
    async with aiohttp.ClientSession() as client, client.post(f"{url}/v1/messages", json=body, headers=headers) as said:
        expect(said.status == 200, "the proxy answers", said.status)


async def _restored(screen: Screen, folder: Path, status: int) -> None:
    await screen.shows("ended")
    expect(f"status {status}" in screen.seen[-1], "the exit status", screen.seen[-1])
    before, after = ((folder / name).read_text() for name in ("before", "after"))
    expect(before == after, "the terminal is as it was", (before, after))
    flags = (await screen.tmux("display", "-p", "#{alternate_on} #{cursor_flag}")).split()
    expect(flags == ["0", "1"], "no other screen, and a cursor", flags)


@SCENARIOS.add
async def the_monitor_of_serve(_screens: Screens, folder: Path) -> None:
    """A request is seen, in any size and without colours; q and y end the proxy."""
    command = _command("serve", "--sandbox", "--port", "0")
    async with on_screen(command, folder, _environment(folder, NO_COLOR="1")) as screen:
        await screen.shows("No active requests")
        found = _URL.search(screen.seen[-1])
        await _ask(found[0] if found else "")
        await screen.shows("from-ou…")
        coloured = await screen.tmux("capture-pane", "-p", "-e")
        expect(not re.search(r"\x1b\[[0-9;]*(3[0-7]|38)", coloured), "no colours", coloured[:200])
        for width, height in ((80, 24), (20, 5), (160, 60)):
            await screen.tmux("resize-window", "-x", str(width), "-y", str(height))
            await screen.shows("╭ Sessions " + "─" * (width - 12) + "╮")
        await screen.tmux("send-keys", "q")
        await screen.shows("Shut down proxy?")
        await screen.tmux("send-keys", "y")
        await _restored(screen, folder, 0)


@SCENARIOS.add
async def attached_to_a_proxy_that_is_killed(_screens: Screens, folder: Path) -> None:
    """What was known stays with the reason, and is replaced when a proxy answers again; q leaves."""
    environment = _environment(folder)
    serve = (sys.executable, "-m", "proxy", "serve", "--no-monitor", "--sandbox", "--port")
    async with _served(*serve, "0", environment=environment) as (process, url):
        await _ask(url)
        async with on_screen(_command("monitor", "--url", url), folder, environment) as screen:
            await screen.shows("from-ou…")
            os.kill(process.pid, signal.SIGKILL)
            await screen.shows("s old: no proxy answers at")
            expect("from-ou…" in screen.seen[-1], "the last picture stays", screen.seen[-1])
            async with _served(*serve, url.rpartition(":")[2], environment=environment):
                await screen.shows("No sessions")
                await screen.tmux("send-keys", "q")
                await _restored(screen, folder, 0)
