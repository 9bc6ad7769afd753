"""How long the body of an answer may pause."""

from __future__ import annotations

import asyncio

import aiohttp


class PauseTimer:
    """Gives up a body that pauses for too long: whoever waits for a piece of it gets a TimeoutError. Wound up when it
    runs out and not with each piece, of which there may be thousands a second."""

    def __init__(self, body: aiohttp.StreamReader, limit_s: float) -> None:
        self._body = body
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer = self._loop.call_later(limit_s, self._look)

    async def read(self) -> bytes:
        """The next piece, b"" at the end. Raises TimeoutError, aiohttp.ClientError, OSError."""
        self._since = self._loop.time()
        try:
            return await self._body.readany()
        finally:
            self._since = None

    def close(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        until = (now if self._since is None else self._since) + self._limit_s
        if now < until:
            self._timer = self._loop.call_at(until, self._look)
        else:
            self._body.set_exception(TimeoutError())
