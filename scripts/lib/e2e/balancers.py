"""nginx and HAProxy as processes, with the recipes of scripts/balancers, before replicas of the proxy."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import aiohttp

from e2e.ports import free_port
from e2e.servers import LISTENS, TRANSPORT

RECIPES = Path(__file__).parents[2] / "balancers"
REPLICAS = 3
#: Three begin at one time.
START_LIMIT_S = 60.0
#: Written there by whoever uses the recipe, and by us.
_REPLICA_LINE = re.compile(r"10\.0\.0\.1(\d):18765")
_LISTEN_LINE = re.compile(r"^(\s*(?:listen |bind ))[^#]*?:?8080")


class Balancer(NamedTuple):
    """A program of the machine, and what it is told to run in the foreground with a recipe."""

    program: Path
    version: str
    folder: Path


async def install_nginx(_version: str, _cache: Path) -> Path:
    return _found("nginx")


async def install_haproxy(_version: str, _cache: Path) -> Path:
    return _found("haproxy")


def _found(name: str) -> Path:
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise RuntimeError(f"{name} is needed: apt-get install --no-install-recommends {name}")
    return Path(path)


@dataclass(slots=True)
class Replica:
    """One process of the proxy on a port that it keeps over restarts. `shares`: others have its state folder, too."""

    port: int
    state: Path
    environment: Mapping[str, str]
    shares: bool = False
    process: asyncio.subprocess.Process | None = None

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def start(self) -> None:
        """Raises TimeoutError, or RuntimeError where it ended before it listened."""
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "proxy", "serve", "--port", str(self.port)),
            env={**self.environment, "XDG_STATE_HOME": str(self.state)},
            stdout=asyncio.subprocess.PIPE,
        )
        await asyncio.wait_for(_listening(self.process), START_LIMIT_S)

    def stop(self) -> None:
        """As whoever rolls out a new version does."""
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
        await self.ended()

    async def ended(self) -> int | None:
        """Waits for its end; the exit status."""
        return await self.process.wait() if self.process is not None else None

    def cpu_s(self) -> float:
        """User and system time that the process has used so far."""
        if self.process is None:
            raise RuntimeError("not started")
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def served(self) -> str:
        """What names all requests that it served: its log, or its monitor where the log is one for several."""
        if not self.shares:
            path = self.state / "model-proxy" / "proxy.log"
            return path.read_text() if path.exists() else ""
        if not self.runs:
            return ""
        key = self.environment.get("PROXY_API_KEY", "")
        async with (
            aiohttp.ClientSession(headers={"x-api-key": key}) as client,
            client.get(f"http://127.0.0.1:{self.port}/monitor") as answer,
        ):
            return await answer.text()


async def _listening(process: asyncio.subprocess.Process) -> None:
    if process.stdout is None:
        raise RuntimeError("the proxy has no stdout")
    async for line in process.stdout:
        if LISTENS.search(line.decode()):
            return
    raise RuntimeError("the proxy ended before it listened")


@asynccontextmanager
async def replicas(
    folder: Path, settings: Mapping[str, str], count: int = REPLICAS, *, one_state: bool = False
) -> AsyncIterator[list[Replica]]:
    """So many processes over one configuration folder; what is left of them is killed by pid."""
    transport = TRANSPORT.get()
    chosen = {"PROXY_P1_TRANSPORT": transport} if transport else {}
    environment = {**os.environ, "PROXY_P1_RESPONSES_API": "1", **chosen, **settings}
    states = [folder / ("state" if one_state else f"state-{number}") for number in range(count)]
    found = [Replica(free_port(), state, environment, one_state) for state in states]
    async with AsyncExitStack() as stack:
        for one in found:
            stack.push_async_callback(one.kill)
        await asyncio.gather(*(one.start() for one in found))
        yield found


@asynccontextmanager
async def balanced(balancer: Balancer, servers: Sequence[Replica]) -> AsyncIterator[str]:
    """The recipe of the program before these replicas; yields the address of the balancer and ends it by its pid."""
    port, name = free_port(), balancer.program.name
    balancer.folder.mkdir(parents=True, exist_ok=True)
    config = _written(balancer, port, [one.port for one in servers])
    output = balancer.folder / f"{name}.output"
    with output.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *_command(balancer.program, config, balancer.folder), stdout=file, stderr=file
        )
    try:
        await asyncio.wait_for(_accepting(process, port, output), START_LIMIT_S)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _written(balancer: Balancer, port: int, servers: Sequence[int]) -> Path:
    """The recipe as it stands, but for the addresses; lines of replicas that are not there are left out."""
    name = balancer.program.name
    kept = []
    for line in next(RECIPES.glob(f"{name}.*")).read_text().splitlines():
        number = _REPLICA_LINE.search(line)
        if number is None:
            kept.append(_LISTEN_LINE.sub(rf"\g<1>127.0.0.1:{port}", line))
        elif int(number[1]) <= len(servers):
            kept.append(_REPLICA_LINE.sub(f"127.0.0.1:{servers[int(number[1]) - 1]}", line))
    path = balancer.folder / f"recipe-{name}.conf"
    path.write_text("\n".join(kept) + "\n")
    return path


def _command(program: Path, config: Path, folder: Path) -> list[str]:
    if program.name == "haproxy":
        return [str(program), "-db", "-f", str(config)]
    main = folder / "nginx-main.conf"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    main.write_text(
        f"daemon off; worker_processes 2; pid {folder}/nginx.pid; events {{ worker_connections 2048; }}\n"
        f"http {{ access_log off; {temporary} include {config}; }}\n"
    )
    return [str(program), "-c", str(main), "-e", "stderr"]


async def _accepting(process: asyncio.subprocess.Process, port: int, output: Path) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if process.returncode is not None:
                raise RuntimeError(f"the balancer ended: {output.read_text()[-1000:]}") from None
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
