"""One process at a time: an advisory exclusive lock on a file, awaited without blocking the event loop.

The kernel releases the lock when its holder closes the file or dies, so there are no stale locks. The lock file is
never removed: that would let two processes lock two different files of one name.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from proxy.errors import UpstreamError

#: Time between two tries.
LOCK_POLL_S = 0.025

#: Longest wait. A holder needs one call to the issuer, which answers within a second or two, and one save; after more
#: time it hangs, and the waiting request fails.
LOCK_WAIT_S = 5.0

#: Another process holds the lock, from flock and from Windows' locking.
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}

#: The file system has no locks (some network mounts). A single proxy needs only its in-process lock; refusing would
#: make sign-in impossible there.
_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}

#: Locks a file descriptor at once, or raises OSError.
Lock = Callable[[int], None]

if sys.platform == "win32":
    import msvcrt

    def lock_now(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def lock_now(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _try_lock(fd: int, lock: Lock) -> bool:
    try:
        lock(fd)
    except OSError as error:
        if error.errno in _HELD:
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True


@asynccontextmanager
async def locked(
    path: Path,
    *,
    label: str,
    wait_s: float = LOCK_WAIT_S,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    lock: Lock = lock_now,
) -> AsyncIterator[None]:
    """Holds the lock on `path`, which is created (0600) in an existing folder.

    Raises UpstreamError `unavailable` if another process keeps it longer than `wait_s`, OSError if the file cannot be
    opened. The bound counts sleeps instead of a clock, so that a suspended machine does not use it up.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for _ in range(max(1, round(wait_s / LOCK_POLL_S))):
            if _try_lock(fd, lock):
                break
            await sleep(LOCK_POLL_S)
        else:
            raise UpstreamError(
                f"Another process has been holding the {label} sign-in for {wait_s:g} s; try again.",
                kind="unavailable",
                provider=label,
            )
        yield
    finally:
        os.close(fd)
