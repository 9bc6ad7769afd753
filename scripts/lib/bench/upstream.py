"""An upstream that costs little, in a process of its own: `python -m bench.upstream [PORT]`.

It speaks the wire that the path of a request names and plays what its last message asks for (`answers.question`). No
two streams are in step.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import sys

from bench.answers import answer, asked

_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
#: Spreads any number of answers evenly over the pause between two events.
_GOLDEN = 0.618034
_counted = itertools.count()


class Upstream(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._playing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._playing is not None:
            self._playing.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        if self._buffer.startswith(b"GET "):  # of a list of models, which it does not have
            del self._buffer[: head + 4]
            self._transport.write(_NOT_FOUND)
            return
        length = _LENGTH.search(self._buffer, 0, head)
        if length is None:
            raise ValueError("a request without its length")
        whole = head + 4 + int(length[1])
        if len(self._buffer) < whole:
            return
        path = self._buffer[: self._buffer.find(b" HTTP")].decode().split()[1].partition("?")[0]
        texts, every_ms = asked(bytes(self._buffer[head:whole]))
        del self._buffer[:whole]
        frames = answer(path, texts)
        if every_ms:
            self._playing = asyncio.ensure_future(self._play(frames, every_ms / 1000))
        else:
            self._transport.write(_HEAD + _chunk(b"".join(frames)) + _END)

    async def _play(self, frames: list[bytes], pause_s: float) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time() + (next(_counted) * _GOLDEN % 1.0) * pause_s
        self._transport.write(_HEAD)
        for number, frame in enumerate(frames):
            await asyncio.sleep(max(0.0, begun + number * pause_s - loop.time()))
            self._transport.write(_chunk(frame))
        self._transport.write(_END)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
