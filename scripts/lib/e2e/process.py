"""One run of a client's program: bounded in time, ended by its id, its output in hand."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUN_LIMIT_S = 240.0
LONGEST_LINE = 1 << 24


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program left behind."""

    status: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON objects among the lines on stdout."""
        return [json.loads(line) for line in self.stdout.split("\n") if line.startswith("{")]


@asynccontextmanager
async def under_way(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> AsyncIterator[Process]:
    """A program whose stdout is read line by line while it runs; it is killed by its id when it did not end before."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=LONGEST_LINE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float = RUN_LIMIT_S
) -> Finished:
    """Runs it without stdin. Raises TimeoutError after `limit_s` seconds."""
    started = asyncio.get_running_loop().time()
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), limit_s)
    except BaseException:
        if process.returncode is None:
            process.kill()
        raise
    seconds = asyncio.get_running_loop().time() - started
    status = process.returncode if process.returncode is not None else -1
    return Finished(status, out.decode(errors="replace"), err.decode(errors="replace"), seconds)
