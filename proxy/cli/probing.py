"""Whether a proxy of ours answers at an address."""

from __future__ import annotations

import asyncio
import json

from proxy.cli.banner import address

#: How long whoever has the port may take to say what it is.
PROBE_S = 3.0


async def is_proxy(host: str, port: int, limit_s: float) -> bool:
    """Whether `/healthz` is answered as we do. Plain sockets: no outgoing proxy has a part in it."""
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
        told = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return b"request-id:" in head.lower() and isinstance(told, dict) and told.get("ok") is True
