"""A process that is measured: one of ours, or any other by its number."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path


class Account:
    """What a process and its children used, as the kernel counts it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def cpu_s(self) -> float:
        """To the nanosecond, with the threads that ended; of children those that live."""
        return sum(time.clock_gettime(_cpu_clock(pid)) for pid in self._tree(self.pid))

    def resident_mb(self) -> float:
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self._tree(self.pid))
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def descriptors(self) -> int:
        return sum(len([*Path(f"/proc/{pid}/fd").iterdir()]) for pid in self._tree(self.pid))

    def _tree(self, pid: int) -> Iterator[int]:
        yield pid
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError):
                for child in task.joinpath("children").read_text().split():
                    yield from self._tree(int(child))


def _cpu_clock(pid: int) -> int:
    """Linux's clock of what all threads of a process used, as `clock_getcpuclockid` gives it."""
    return ~pid << 3 | 2


class Process(Account):
    """A child with its first line of output."""

    def __init__(self, process: asyncio.subprocess.Process, first_line: str) -> None:
        super().__init__(process.pid)
        self.process = process
        self.first_line = first_line

    @classmethod
    async def start(
        cls, stack: AsyncExitStack, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments),
            env={**os.environ, **(environment or {})},
            stdout=asyncio.subprocess.PIPE,
        )
        stack.push_async_callback(process.wait)
        stack.callback(process.terminate)
        assert process.stdout is not None
        return cls(process, (await process.stdout.readline()).decode())
