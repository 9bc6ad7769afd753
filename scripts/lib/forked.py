"""Python processes that are forked from one that has the modules of the proxy already: a start takes some 0.03 s of a
processor and not 0.5 to 1.3.

The first start runs this file as that process, which ends with whoever started it. For each start it forks a watcher,
which forks the program and tells its id and, later, its exit status.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from select import select

ROOT = Path(__file__).parents[2]


class Forked:
    """What its users need of `asyncio.subprocess.Process`. A stream is None unless it is a pipe."""

    stdin: asyncio.StreamWriter | None = None
    stdout: asyncio.StreamReader | None = None
    stderr: asyncio.StreamReader | None = None
    returncode: int | None = None

    def __init__(self, pid: int, report: asyncio.StreamReader, reporting: asyncio.StreamWriter) -> None:
        self.pid = pid
        self._ended = asyncio.ensure_future(self._watch(report, reporting))

    async def _watch(self, report: asyncio.StreamReader, reporting: asyncio.StreamWriter) -> int:
        self.returncode = int(await report.readline())
        reporting.close()
        if self.stdin is not None:
            self.stdin.close()
        return self.returncode

    async def wait(self) -> int:
        """The exit status, below 0 for a signal."""
        return await asyncio.shield(self._ended)

    async def communicate(self, data: bytes = b"") -> tuple[bytes, bytes]:
        """Writes `data` as all that comes, and reads what is printed to its end."""
        if self.stdin is not None:
            self.stdin.write(data)
            self.stdin.close()
        printed = [_nothing() if stream is None else stream.read() for stream in (self.stdout, self.stderr)]
        out, err, _ = await asyncio.gather(*printed, self.wait())
        return out, err

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it ended, and the loop has not heard of it
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def start(
    *arguments: str,
    env: Mapping[str, str],
    cwd: Path = ROOT,
    stdin: int = DEVNULL,
    stderr: int | None = PIPE,
) -> Forked:
    """Starts `python ARGUMENT…`, which begin with `-m MODULE` or `-c CODE`. Variables that are read before a program
    runs, by Python or by a module that is imported (SSL_CERT_FILE), have no effect, but for PYTHONPATH. `stdin` is a
    pipe or nothing, `stderr` a pipe or, as None, ours."""
    report, reporting = socket.socketpair()
    typing, read = socket.socketpair() if stdin == PIPE else (None, os.fdopen(os.open(os.devnull, os.O_RDONLY)))
    (out, printed), (err, told) = os.pipe(), os.pipe()
    with reporting, read, os.fdopen(printed, "wb"), os.fdopen(told, "wb"):
        streams = read.fileno(), printed, 2 if stderr is None else told
        socket.send_fds(_server(), [b"+"], [reporting.fileno(), *streams])
    reader, writer = await asyncio.open_connection(sock=report)
    writer.write(json.dumps([arguments, dict(env), str(cwd)]).encode() + b"\n")
    process = Forked(int(await reader.readline()), reader, writer)
    if typing is not None:
        _, process.stdin = await asyncio.open_connection(sock=typing)
    process.stdout = await _reader(out)
    if stderr is None:
        os.close(err)
    else:
        process.stderr = await _reader(err)
    return process


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", 0))
    return reader


@functools.cache
def _server() -> socket.socket:
    """Where the process that forks is asked."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, __file__, str(theirs.fileno())]
    with theirs:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=DEVNULL,
            pass_fds=(theirs.fileno(),),
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _serve(asked: socket.socket) -> None:
    """Forks until nobody can ask any more."""
    import proxy

    for module in pkgutil.walk_packages(proxy.__path__, "proxy."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.freeze()  # a collection in a child would copy all pages
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a terminal, all processes get it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for watchers
    while descriptors := socket.recv_fds(asked, 1, 4)[1]:
        if not os.fork():
            asked.close()
            _watch(*descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)


def _watch(report: int, *streams: int) -> None:
    """Forks the program, tells of it, and ends it when nobody listens any more. In the program, returns when that ended
    by itself."""
    ended, woken = socket.socketpair()
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken.fileno())
    reporting = socket.socket(fileno=report)
    arguments, env, cwd = json.loads(reporting.makefile().readline())
    if child := os.fork():
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2, *streams):
            os.dup2(nowhere, stream)
        reporting.send(b"%d\n" % child)
        if ended not in select([reporting, ended], [], [])[0]:
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with suppress(BrokenPipeError):
            reporting.send(b"%d\n" % status)
        os._exit(0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for one in (ended, woken, reporting):
        one.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[:0] = [cwd, *env.get("PYTHONPATH", "").split(os.pathsep)]
    _run(*arguments)


def _run(option: str, what: str, *arguments: str) -> None:
    sys.argv = [option, *arguments]
    sys.orig_argv = [sys.executable, option, what, *arguments]
    if option == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})


async def _nothing() -> bytes:
    return b""


if __name__ == "__main__":
    del sys.path[0]  # this folder, where a program finds nothing
    _serve(socket.socket(fileno=int(sys.argv[1])))
