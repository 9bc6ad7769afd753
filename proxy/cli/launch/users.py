"""The users of a background proxy: a file with their process ids, and a lock on it.

A launcher becomes the client that it starts, so an id is that of a client; or of the session of a terminal. No process
has to sign off: an id counts until its process ends, in any way. Starting and stopping happen under the lock, so no
client gets a proxy that is about to end.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.auth.lock import lock_now
from proxy.auth.store import naming
from proxy.config import ConfigError

if TYPE_CHECKING:
    from aiohttp import web

#: Seconds between a background proxy's checks for users.
POLL_S = 1.0
#: Seconds without users after which it ends, by default: the next command of a script still finds it.
UNUSED_S = 10.0
#: Beginning of the name of a file that belongs to one launcher.
ALONE = "alone-"
#: The holder of the lock starts a proxy, which takes a second, or ends one.
WAIT_S = 40.0
_TRY_S = 0.05
#: More launchers at one time are not realistic.
_MAX_BYTES = 64 * 1024


class Users:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._gone: set[int] = set()
        self._held: int | None = None

    def forget(self) -> None:
        """Removes the file if only one launcher uses it; for others it is the lock."""
        if self.path.name.startswith(ALONE):
            self.path.unlink(missing_ok=True)

    def take(self) -> bool:
        """Locks the file without waiting, until the process ends or `release`; returns whether that was possible."""
        held = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock_now(held)
        except OSError:
            os.close(held)
            return False
        self._held = held
        return True

    def release(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    @contextmanager
    def locked(self, wait_s: float = WAIT_S) -> Iterator[None]:
        """Holds the lock. Raises ConfigError when another process holds it for long."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        end = time.monotonic() + wait_s
        while not self.take():
            if time.monotonic() > end:
                raise ConfigError(f"another start has been under way for {wait_s:g} s: it holds {self.path}")
            time.sleep(_TRY_S)
        try:
            yield
        finally:
            self.release()

    def only(self, process: int) -> None:
        """Removes all ids except this one."""
        with naming(self.path):
            self.path.write_text(f"{process}\n")

    def add(self, process: int) -> None:
        with naming(self.path), self.path.open("a") as file:
            file.write(f"{process}\n")

    def any(self) -> bool:
        """Whether one of the processes still runs. One that has ended is not checked again: its id may be reused."""
        with suppress(OSError):
            text = self.path.read_bytes()[:_MAX_BYTES]
            named = {int(line) for line in text.split() if line.isdigit()} - self._gone
            self._gone |= {process for process in named if not _runs(process)}
            return bool(named - self._gone)
        return False


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (OSError, OverflowError):  # another user's process, so not one of ours
        return False
    return True


async def stop_when_unused(
    users: Users,
    server: web.Server,
    stop: asyncio.Event,
    unused_s: float = UNUSED_S,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Stops the proxy after this long without users, connections and requests; it then holds the lock."""
    idle, seen = 0.0, -1
    while not stop.is_set():
        await sleep(POLL_S)
        count = server.requests_count
        used = users.any() or bool(server.connections) or count != seen
        idle, seen = (0.0 if used else idle + POLL_S), count
        if idle >= unused_s and users.take():
            if not users.any():
                stop.set()
                return
            users.release()
