"""Sends requests and watches their answers, in a process of its own, which costs little.

`python -m bench.load URL FILE REQUESTS CONNECTIONS` prints a line of JSON (`Seen`). FILE has the body; NUMBER in it
becomes another number of the same length in each request.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

NUMBER = b"NUMBER"
_END = b"\r\n0\r\n\r\n"


class Seen(NamedTuple):
    """Milliseconds: the median and the 99th percentile of the time to the first text, and of the whole answer."""

    first_median: float
    first_99: float
    whole_median: float
    whole_99: float


def percentile(values: Sequence[float], share: float) -> float:
    """
    >>> percentile([5.0, 1.0, 3.0], 0.5), percentile([1.0, 2.0], 0.99)
    (3.0, 2.0)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Client(asyncio.Protocol):
    """One connection, with one request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[tuple[float, float]]:
        """The seconds until the first text and until the end."""
        self._answered: asyncio.Future[tuple[float, float]] = asyncio.get_running_loop().create_future()
        self._head, self._tail, self._first, self._begun = b"", b"", 0.0, time.perf_counter()
        self._transport.write(request)
        return self._answered

    def data_received(self, data: bytes) -> None:
        self._head = self._head or data[:15]
        if not self._first and b"delta" in data:
            self._first = time.perf_counter() - self._begun
        self._tail = (self._tail + data)[-len(_END) :]
        if b" 200 " not in self._head:
            self._answered.set_exception(RuntimeError(data[:300].decode(errors="replace")))
            self._transport.abort()
        elif self._tail == _END:
            self._answered.set_result((self._first, time.perf_counter() - self._begun))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the connection was closed"))


async def main(url: str, file: str, requests: int, connections: int) -> Seen:
    loop, parts, body = asyncio.get_running_loop(), urlsplit(url), Path(file).read_bytes()
    numbers = iter(range(requests))
    times: list[tuple[float, float]] = []

    async def worker(name: int) -> None:
        _, client = await loop.create_connection(Client, parts.hostname, parts.port)
        head = (
            f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"x-claude-code-session-id: bench-{name}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        for number in numbers:
            times.append(await client.ask(head + body.replace(NUMBER, b"%06d" % number)))
        client._transport.close()

    await asyncio.gather(*map(worker, range(connections)))
    first, whole = ([one[place] * 1000 for one in times] for place in (0, 1))
    return Seen(percentile(first, 0.5), percentile(first, 0.99), percentile(whole, 0.5), percentile(whole, 0.99))


if __name__ == "__main__":
    address, body_file, count, at_a_time = sys.argv[1:5]
    print(json.dumps(asyncio.run(main(address, body_file, int(count), int(at_a_time)))))
