"""An upstream that says given bytes, whatever they are: what no simulator over an HTTP library can say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

#: Between pieces, so that each arrives alone.
APART_S = 0.01

End = Callable[[asyncio.StreamWriter], object]


def _stay(_writer: asyncio.StreamWriter) -> None: ...


#: How the connection goes on behind the last piece.
ENDS: Final[dict[str, End]] = {
    "stay": _stay,
    "close": lambda writer: writer.close(),
    "half": lambda writer: writer.write_eof(),
    "reset": lambda writer: writer.transport.abort(),
}


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def head(*lines: str, status: str = "200 OK", kind: str = "text/event-stream") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", f"content-type: {kind}", *lines, "", "")).encode()


@asynccontextmanager
async def saying(pieces: Sequence[bytes], end: str = "stay") -> AsyncIterator[str]:
    """The address of one. Every request, read to the end of its head, is answered so; then nothing more is read."""
    tasks: set[asyncio.Task[None]] = set()
    transports: list[asyncio.WriteTransport] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transports.append(writer.transport)
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(APART_S)
        ENDS[end](writer)
        await asyncio.sleep(60)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0)
