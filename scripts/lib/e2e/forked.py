"""Processes of the proxy from one that has its modules already: a start takes 0.05 s of a processor and not 1.3.

Scenarios of the monitor, of the launcher and of captures start it as a user does.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pkgutil
import socket
import sys
from collections.abc import Mapping, Sequence

import proxy
from proxy.cli import main

#: What `serve` may import when it runs.
_MODULES = [one.name for one in pkgutil.walk_packages(proxy.__path__, "proxy.") if not one.name.endswith("__main__")]
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([__name__, *_MODULES])


class Forked:
    """`python -m proxy …` with an environment of its own. `stdout` is what it prints."""

    def __init__(
        self, process: multiprocessing.process.BaseProcess, stdout: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self.stdout = stdout
        self._writer = writer

    async def end(self) -> None:
        """By its id, as whoever stops it does, and waits for that."""
        self._process.terminate()
        await self.stdout.read()  # it is closed with the process
        self._process.join()
        self._writer.close()


async def forked(arguments: Sequence[str], environment: Mapping[str, str]) -> Forked:
    """Starts it."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = _FORKING.Process(target=_serve, args=(theirs, list(arguments), dict(environment)), daemon=True)
        process.start()
    return Forked(process, *await asyncio.open_connection(sock=ours))


def _serve(stdout: socket.socket, arguments: list[str], environment: dict[str, str]) -> None:
    os.dup2(stdout.fileno(), 1)
    stdout.close()
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(main(arguments))
