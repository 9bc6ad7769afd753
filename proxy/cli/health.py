"""`health`: asks whether the proxy of these settings answers. For the health check of a container, which has no other
program for it."""

from __future__ import annotations

import argparse
import asyncio
import json

from proxy.cli.banner import address, local_host
from proxy.cli.command import Context, say
from proxy.cli.config_file import ConfigFile
from proxy.config import ConfigError

#: Seconds for a server on the port to identify itself.
PROBE_S = 3.0


async def is_proxy(host: str, port: int, limit_s: float) -> bool:
    """Whether one of our proxies answers `/healthz`. Plain sockets bypass outgoing proxies."""
    request = f"GET /healthz HTTP/1.1\r\nHost: {address(host, port)}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(limit_s):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(request.encode())
                head, _, body = (await reader.read(4096)).partition(b"\r\n\r\n")
                body = body or await reader.read(4096)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return b"request-id:" in head.lower() and isinstance(found, dict) and found.get("ok") is True


def arguments(parser: argparse.ArgumentParser, _context: Context) -> None:
    parser.add_argument("--port", type=int, help="instead of the port in the settings")
    parser.add_argument("--seconds", type=float, default=PROBE_S, metavar="S", help="longest wait in seconds")


async def run(arguments: argparse.Namespace, context: Context) -> int:
    config = ConfigFile(context).config
    port = config.port if arguments.port is None else arguments.port
    if not 0 < port <= 65535:
        raise ConfigError("port 0 is another one at each start: say which with --port")
    host = local_host(config.bind_address)
    where = address(host, port)
    if await is_proxy(host, port, arguments.seconds):
        say(f"a proxy answers on {where}")
        return 0
    say(f"no proxy answers on {where}")
    return 1
