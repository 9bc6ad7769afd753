"""A request as it came, kept for whoever wants to look at it afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web


@dataclass(slots=True)
class Received:
    """`status` is 0 until the answer began; `body` is None when it was not JSON. Header names in any case."""

    path: str
    headers: Mapping[str, str]
    body: Any
    status: int = 0


async def receive(request: web.Request) -> Received:
    """Reads the request to its end."""
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError):
        body = None
    return Received(request.path, request.headers, body)
