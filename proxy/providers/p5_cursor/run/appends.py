"""What a run says to the service: one message after the other, each with its number, each sent once.

The service drops a number that it knows, and a message that is sent again may be heard twice: so there is one counter
and one task that sends, and a failure ends the run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from proxy.providers.p5_cursor.wire.protobuf import encode

#: Bytes of messages that wait to be sent; what asks for more answers is not read on until they are fewer.
MAX_WAITING_BYTES = 8 * 1024 * 1024


class Appends:
    """The messages of one run.

    send    sends one: `(number, message)`. Raises ProxyError
    failed  is told why a message could not be sent; none is sent after it
    """

    def __init__(self, send: Callable[[int, bytes], Awaitable[None]], failed: Callable[[Exception], None]) -> None:
        self._send = send
        self._failed = failed
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._next = 0
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._closed = False

    @property
    def sent(self) -> int:
        """How many messages were sent."""
        return self._next

    def put(self, message: bytes | dict[str, Any]) -> None:
        """A message, behind those that wait; none is taken any more after `stop`."""
        if self._closed:
            return
        data = message if isinstance(message, bytes) else encode("AgentClientMessage", message)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > MAX_WAITING_BYTES:
            self._room.clear()
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    def beat(self, message: dict[str, Any]) -> None:
        """A sign of life, unless something waits that is one as well."""
        if not self._waiting:
            self.put(message)

    async def room(self) -> None:
        """Returns when more may wait."""
        await self._room.wait()

    async def settled(self) -> None:
        """Returns when everything was sent, or cannot be."""
        while self._task is not None and not self._closed:
            await asyncio.wait({self._task})

    def stop(self) -> None:
        """Nothing more is sent; what is on its way is not called back."""
        self._closed = True
        self._waiting.clear()
        self._room.set()

    async def close(self) -> None:
        """Ends the task, whatever it is doing."""
        self.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        """Sends what waits, then ends: a run that is silent has no task for it."""
        try:
            while self._waiting:
                data = self._waiting[0]
                number, self._next = self._next, self._next + 1
                await self._send(number, data)
                if self._waiting:
                    self._waiting.popleft()
                    self._size -= len(data)
                if self._size <= MAX_WAITING_BYTES:
                    self._room.set()
        except Exception as error:
            self.stop()
            self._failed(error)
        finally:
            self._task = None
