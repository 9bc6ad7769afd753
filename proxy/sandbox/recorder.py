"""Requests and sockets as they came, kept for whoever wants to look at them afterwards."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

#: Requests kept for inspection, each with its body, and sockets: enough for a test, bounded for a benchmark.
KEPT_REQUESTS = 128


@dataclass(slots=True)
class Received:
    """`status` is 0 until the answer began; `body` is None when it was not JSON. Header names in any case.

    `size` counts the bytes of the body or frame; `socket` is the number of the socket it came over, None for HTTP, and
    then the headers are those of the upgrade.
    """

    path: str
    headers: Mapping[str, str]
    body: Any
    status: int = 0
    size: int = 0
    socket: int | None = None


@dataclass(slots=True)
class Socket:
    """An upgrade and what came over it. `status` is 101, that of the refusal, or 0 when there was no answer.

    `frames` are the last text and binary frames, oldest first; `pings` and `pongs` count those of the client;
    `close_code` is None before the end, and 1006 when the end came without a close frame.
    """

    number: int
    headers: Mapping[str, str]
    status: int = 0
    frames: deque[Received] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))
    pings: int = 0
    pongs: int = 0
    close_code: int | None = None


async def receive(request: web.Request) -> Received:
    """Reads the request to its end."""
    data = await request.read()
    return Received(request.path, request.headers, read_json(data), size=len(data))


def read_json(data: bytes) -> Any:
    """None for what is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
