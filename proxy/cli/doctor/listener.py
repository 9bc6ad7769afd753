"""The port: free, taken by a proxy, or by something else."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from proxy.cli.banner import address, local_host
from proxy.cli.config_file import check_exposure, is_open
from proxy.cli.doctor.finding import Finding, Group, Setup, fail, note, ok, own_id, warn
from proxy.cli.health import PROBE_S, is_proxy
from proxy.config import ConfigError
from proxy.errors import ProxyError, as_typed
from proxy.server.callers.keys import FILE_NAME as KEYS
from proxy.server.callers.keys import read_keys
from proxy.settings import is_loopback

#: The kernel's files about sockets and processes, on Linux.
PROC = Path("/proc")
#: The state of a socket that listens, in the tables of the kernel.
_LISTENS = "0A"


def check_exposure_of(setup: Setup) -> Sequence[Finding]:
    """Checks who can reach the listener."""
    config = setup.config
    try:
        read_keys(setup.config_root / KEYS)
    except ProxyError as error:
        return [fail("the keys of callers open nothing", error.message, f"{setup.program} keys list")]
    try:
        check_exposure(config, setup.config_root)
    except ConfigError as error:
        key = setup.export("PROXY_API_KEY", "$(openssl rand -hex 24)")
        return [fail(f"{config.bind_address} would be open to everybody", as_typed(error.message, setup.program), key)]
    if is_open(config, setup.config_root):
        cure = setup.export("PROXY_API_KEY", "$(openssl rand -hex 24)")
        return [warn(f"{config.bind_address} is open to everybody", "anyone who reaches it uses your accounts", cure)]
    if not is_loopback(config.bind_address):
        return [note(f"listens on {config.bind_address}, for callers with the key", "the key travels without TLS")]
    return []


async def check_port(setup: Setup) -> Sequence[Finding]:
    config = setup.config
    if config.port == 0:
        return [note("port 0: each start takes another port", "clients need the new address each time")]
    where = address(config.bind_address, config.port)
    problem = _bind_problem(config.bind_address, config.port)
    if problem is None:
        return [ok(f"{where} is free", f"no proxy runs there; {setup.program} starts one")]
    if problem == errno.EADDRINUSE:
        return [await _taken(setup, where)]
    if problem == errno.EACCES:
        why = "the system keeps ports below 1024 for itself"
        return [fail(f"{where} may not be used", why, setup.export("PROXY_PORT", 18765))]
    if problem == errno.EADDRNOTAVAIL:
        why = "no network interface of this machine has that address"
        return [fail(f"{where} is not of this machine", why, setup.export("PROXY_BIND_ADDRESS", "127.0.0.1"))]
    return [fail(f"{where} cannot be listened on", errno.errorcode.get(problem, str(problem)), "see bindAddress, port")]


def _bind_problem(host: str, port: int) -> int | None:
    """Why a listener could not bind, as `errno`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as one:
        if os.name == "posix":  # elsewhere it would share the port with its holder
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
            one.listen(1)
        except OSError as error:
            return error.errno
    return None


async def _taken(setup: Setup, where: str) -> Finding:
    host = local_host(setup.config.bind_address)
    holder = _holder(setup.config.port)
    by = f" ({holder})" if holder else ""
    other = setup.export("PROXY_PORT", setup.config.port + 1)
    if await is_proxy(host, setup.config.port, PROBE_S):
        owners = {owner for _, owner in _listening(setup.config.port)}
        if owners and own_id() not in owners:
            why = f"it belongs to user {min(owners)}: its settings and its accounts count, not yours"
            return warn(f"somebody else's proxy answers on {where}", why, other)
        return ok(f"a proxy answers on {where}{by}")
    cure = f"end it, or {other}"
    return fail(f"{where} is taken by something else{by}", "the program there is not a model-proxy", cure)


def _holder(port: int) -> str:
    """Name and number of the process that listens on a port, "" if unknown."""
    inodes = {f"socket:[{inode}]" for inode, _ in _listening(port)}
    for process in PROC.glob("[0-9]*") if inodes else ():
        try:
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()}, process {process.name}"
        except OSError:  # of another user, or gone
            continue
    return ""


def _listening(port: int) -> Iterator[tuple[str, int]]:
    """The listening sockets of a port: inode and user."""
    for table in ("net/tcp", "net/tcp6"):
        try:
            lines = (PROC / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9], int(fields[7])


LISTENER = Group("listener", "Listener", settled=(check_exposure_of, check_port))
