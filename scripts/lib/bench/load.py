"""Sends requests and watches their answers, in a process of its own, which costs little.

`python -m bench.load URL FILE REQUESTS CONNECTIONS TEXTS SESSIONS APART` prints a line of JSON (`Seen`). FILE has the
body; NUMBER in it becomes another number of the same length in each request. TEXTS is how many `word…` an answer has:
one with fewer ends the run. SESSIONS is `kept` (one for each connection) or `new` (one for each request). Connections
begin APART milliseconds after each other.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

NUMBER = b"NUMBER"
WORD = b"word"
PROBE_EVERY_S = 0.1
_END = b"\r\n0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Seen:
    """Milliseconds: median and 99th percentile of the time to the first text and of the whole answer; the longest
    silence between two texts; and the longest time that a request for `/healthz` took beside them."""

    first_median: float
    first_99: float
    whole_median: float
    whole_99: float
    silence: float
    lag: float


def percentile(values: Sequence[float], share: float) -> float:
    """
    >>> percentile([5.0, 1.0, 3.0], 0.5), percentile([1.0, 2.0], 0.99)
    (3.0, 2.0)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Client(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, texts: int) -> None:
        self._texts = texts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[tuple[float, float, float]]:
        """The seconds until the first text and until the end, and the longest between two texts."""
        self._answered: asyncio.Future[tuple[float, float, float]] = asyncio.get_running_loop().create_future()
        self._head, self._tail, self._seen, self._first, self._silence = b"", b"", 0, 0.0, 0.0
        self._begun = self._last = time.perf_counter()
        self._transport.write(request)
        return self._answered

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self._head = self._head or data[:15]
        joined = self._tail + data
        if texts := joined.count(WORD) - self._tail.count(WORD):
            if self._seen:
                self._silence = max(self._silence, now - self._last)
            else:
                self._first = now - self._begun
            self._seen += texts
            self._last = now
        self._tail = joined[-len(_END) :]
        if b" 200 " not in self._head:
            self._fail(data)
        elif self._tail == _END:
            if self._seen < self._texts:
                self._fail(data)
            else:
                self._answered.set_result((self._first, now - self._begun, self._silence))

    def _fail(self, data: bytes) -> None:
        said = data[-500:].decode(errors="replace")
        self._answered.set_exception(RuntimeError(f"{self._seen} texts of {self._texts}: {said}"))
        self._transport.abort()

    def close(self) -> None:
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the connection was closed"))


@dataclass(frozen=True, slots=True)
class Load:
    """
    at        where it is sent
    texts     of each answer
    new       whether each request has a session of its own
    apart_s   between the beginnings of two connections
    """

    at: SplitResult
    body: bytes
    texts: int
    new: bool = False
    apart_s: float = 0.0

    async def run(self, requests: int, connections: int) -> Seen:
        numbers = iter(range(requests))
        times: list[tuple[float, float, float]] = []

        async def worker(name: int) -> None:
            await asyncio.sleep(name * self.apart_s)
            connect = asyncio.get_running_loop().create_connection
            _, client = await connect(lambda: Client(self.texts), self.at.hostname or "", self.at.port or 0)
            for number in numbers:
                times.append(await client.ask(self._request(number if self.new else name, number)))
            client.close()

        probe = asyncio.create_task(self._longest_lag_s())
        try:
            await asyncio.gather(*map(worker, range(connections)))
        finally:
            probe.cancel()
            lag = await probe
        first, whole, silence = ([one[place] * 1000 for one in times] for place in range(3))
        return Seen(
            *(percentile(first, 0.5), percentile(first, 0.99), percentile(whole, 0.5), percentile(whole, 0.99)),
            silence=max(silence),
            lag=lag * 1000,
        )

    def _request(self, session: int, number: int) -> bytes:
        head = (
            f"POST {self.at.path} HTTP/1.1\r\nHost: {self.at.netloc}\r\nContent-Type: application/json\r\n"
            f"x-claude-code-session-id: bench-{session}\r\nContent-Length: {len(self.body)}\r\n\r\n"
        )
        return head.encode() + self.body.replace(NUMBER, b"%06d" % number)

    async def _longest_lag_s(self) -> float:
        """Until it is cancelled; 0.0 when that came before the first."""
        longest = 0.0
        reader, writer = await asyncio.open_connection(self.at.hostname, self.at.port)
        try:
            while True:
                await asyncio.sleep(PROBE_EVERY_S)
                begun = time.perf_counter()
                writer.write(f"GET /healthz HTTP/1.1\r\nHost: {self.at.netloc}\r\n\r\n".encode())
                if not await reader.read(1 << 16):
                    raise ConnectionError("the connection of the probe was closed")
                longest = max(longest, time.perf_counter() - begun)
        except asyncio.CancelledError:
            return longest
        finally:
            writer.close()


async def main(url: str, file: str, requests: str, connections: str, texts: str, sessions: str, apart: str) -> Seen:
    load = Load(urlsplit(url), Path(file).read_bytes(), int(texts), sessions == "new", int(apart) / 1000)
    return await load.run(int(requests), int(connections))


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(main(*sys.argv[1:])))))
