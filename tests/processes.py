"""Real processes of the command line, started and ended by their id. `forked.start` starts them quickly, `start` any
command as a user does."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import forked  # noqa: E402
from forked import Forked  # noqa: E402

LISTENS = re.compile(rb"listens on (http://\S+)")


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """A small world: nothing of this machine's settings or credentials."""
    (folder / "config").mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
    own = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "PROXY_CONFIG_DIR": str(folder / "config")}
    return {**kept, **own, "PYTHONPATH": str(ROOT), **variables}


#: Before the code of a child: `begin()` says "ready" and waits for a line.
_PRELUDE = """
import sys
def begin():
    print("ready", flush=True)
    sys.stdin.readline()
"""


class Child:
    """Code in a process of its own, which has come to its `begin()`. `finish` lets it go on and gives its output."""

    def __init__(self, process: Forked) -> None:
        self.process = process

    @classmethod
    async def started(cls, code: str, *arguments: object) -> Child:
        command = ("-c", _PRELUDE + code, *map(str, arguments))
        process = await forked.start(*command, env=os.environ, stdin=PIPE)
        assert process.stdout is not None and await process.stdout.readline() == b"ready\n"
        return cls(process)

    async def finish(self) -> tuple[str, str]:
        out, err = await self.process.communicate(b"go\n")
        return out.decode(), err.decode()


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    status: int
    out: str
    err: str


async def start(*command: str, **options: Any) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*command, **{"cwd": ROOT, "stdout": PIPE, "stderr": PIPE, **options})


async def finished(process: asyncio.subprocess.Process | Forked, timeout_s: float = 15.0) -> Finished:
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout_s)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(), err.decode())


async def run(*arguments: str, env: Mapping[str, str], timeout_s: float = 15.0, cwd: Path = ROOT) -> Finished:
    """A command to its end."""
    return await finished(await forked.start("-m", "proxy", *arguments, env=env, cwd=cwd), timeout_s)


class Proxy:
    """`serve` as a process; leaving the `with` block ends it. `code` replaces the command line for tests that must
    change a constant first; `fresh` starts it as a user does."""

    def __init__(
        self, folder: Path, *arguments: str, code: str | None = None, fresh: bool = False, **variables: str
    ) -> None:
        self.folder = folder
        self._start = partial(start, sys.executable) if fresh else forked.start
        self._command = ["-c", code] if code else ["-m", "proxy", "serve", "--port", "0", *arguments]
        self._env = environment(folder, **variables)
        self.out, self.err = b"", b""

    async def __aenter__(self) -> Proxy:
        self.process = await self._start(*self._command, env=self._env)
        assert self.process.stdout and self.process.stderr
        streams = {"out": self.process.stdout, "err": self.process.stderr}
        self._reading = [asyncio.ensure_future(self._read(*pair)) for pair in streams.items()]
        async with asyncio.timeout(15):
            while not (found := LISTENS.search(self.out)):
                assert self.process.returncode is None, self.err.decode()
                await asyncio.sleep(0.01)
        self.url = found[1].decode()
        self.port = int(self.url.rpartition(":")[2])
        self.client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
        return self

    async def _read(self, name: str, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(65536):
            setattr(self, name, getattr(self, name) + chunk)

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await asyncio.gather(*self._reading)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self, timeout_s: float = 15.0) -> int:
        """The exit status."""
        async with asyncio.timeout(timeout_s):
            status = await self.process.wait()
            await asyncio.gather(*self._reading)
        return status

    @property
    def log(self) -> str:
        """The log file so far."""
        files = list(self.folder.rglob("proxy.log"))
        return files[0].read_text() if files else ""

    @property
    def memory(self) -> int:
        """Resident bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        kilobytes = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert kilobytes
        return int(kilobytes[1]) * 1024

    def post(self, body: Any, **headers: str) -> Any:
        """A Messages request, to be used as `async with`."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(
            self.url + "/v1/messages", data=data, headers={"content-type": "application/json", **headers}
        )

    async def raw(self, data: bytes, wait_s: float = 3.0) -> bytes:
        """What comes back for these bytes before the connection is closed or nothing comes for a while."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        received = b""
        try:
            writer.write(data)
            async with asyncio.timeout(wait_s):
                while not complete(received) and (chunk := await reader.read(65536)):
                    received += chunk
        except (TimeoutError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
        return received


def complete(received: bytes) -> bool:
    """Whether the bytes are one whole answer with a length."""
    head, found, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return bool(found and length and len(body) >= int(length[1]))
