"""A process that is measured."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


class Process:
    """A child with its first line of output and its CPU account."""

    def __init__(self, process: asyncio.subprocess.Process, first_line: str) -> None:
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

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
