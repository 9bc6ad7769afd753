"""Installations that are made once into a cache, which several runs may share."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path


async def once(folder: Path, make: Callable[[], Awaitable[None]]) -> None:
    """Makes what the folder holds, unless a mark in it says that it is whole: a half of it is removed first.

    Whoever wants the same meanwhile waits, in this process or another.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    mark = folder / ".ready"
    async with _alone(folder.with_name(f".{folder.name}.lock")):
        if mark.exists():
            return
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir()
        await make()
        mark.touch()


async def command(*words: str) -> bool:
    """Whether it succeeded. It is killed when the caller is cancelled, and waited for."""
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.DEVNULL)
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def _alone(lock: Path) -> AsyncIterator[None]:
    with lock.open("w") as file:
        await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
        yield
