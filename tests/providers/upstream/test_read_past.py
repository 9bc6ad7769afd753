"""What `read_past` gives to a function where it arrives, and what it returns: the same bytes as a reader gets, in the
same order, whatever the body is and however it ends."""

from __future__ import annotations

import asyncio
import gc
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from harness import until
from raw_upstream import APART_S, chunk, head, saying
from samples import rows

from proxy.providers.upstream.aiohttp_internals import (
    PIECE_BYTES,
    BodyResponse,
    HookedConnector,
    WatchedProtocol,
    read_past,
)

CHUNKED, LAST = head("transfer-encoding: chunked"), b"0\r\n\r\n"
LARGE = b"x" * (PIECE_BYTES + 5)


@asynccontextmanager
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=HookedConnector(), response_class=BodyResponse) as made:
        yield made


@dataclass
class Reader:
    """Takes each piece, or all but those that are named. `read` has all in order, with whether it was taken."""

    leaves: Sequence[bytes] = ()
    read: list[tuple[bool, bytes]] = field(default_factory=list)
    error: Exception | None = None

    def take(self, piece: bytes) -> bool:
        if piece in self.leaves:
            return False
        self.read.append((True, piece))
        return True

    async def all(self, body: aiohttp.StreamReader) -> None:
        try:
            while piece := await read_past(body, self.take):
                self.read.append((False, piece))
        except (aiohttp.ClientError, OSError) as error:
            self.error = error

    @property
    def marked(self) -> list[bytes]:
        """With a star behind what was returned."""
        return [piece if taken else piece + b"*" for taken, piece in self.read]


async def reading(pieces: Sequence[bytes], end: str, leaves: Sequence[bytes] = ()) -> Reader:
    reader = Reader(leaves)
    async with saying(pieces, end) as url, session() as client, client.get(url) as response:
        async with asyncio.timeout(5):
            await reader.all(response.content)
        assert response.content._waiter is None
        connection = response.connection
        assert connection is None or connection.protocol is None or connection.protocol.take is None
    return reader


PACKED = zlib.compress(b"a" * 100)
#: pieces as they arrive, how the connection goes on -> what is read, a star behind what the reader got; whether it ends
#: well
BODIES: list[tuple[list[bytes], str, list[bytes], bool]] = [
    ([CHUNKED, chunk(b"a"), chunk(b"b"), LAST], "stay", [b"a", b"b"], True),
    ([CHUNKED, chunk(b"a") + chunk(b"b"), LAST], "stay", [b"ab"], True),
    ([CHUNKED, b"3\r\na", b"b", b"c\r", b"\n", LAST], "stay", [b"a", b"b", b"c"], True),
    ([CHUNKED, chunk(b"a"), chunk(b"b") + LAST], "stay", [b"a", b"b*"], True),
    ([CHUNKED, chunk(b"a"), chunk(b"b")], "close", [b"a", b"b"], False),
    ([CHUNKED, chunk(b"a"), b"5\r\nb"], "close", [b"a", b"b"], False),
    ([CHUNKED, chunk(b"a"), chunk(b"b")], "half", [b"a", b"b"], False),
    ([CHUNKED, chunk(b"a"), chunk(b"b")], "reset", [b"a", b"b"], False),
    ([CHUNKED, chunk(b"a"), b"zz\r\n"], "stay", [b"a"], False),
    ([CHUNKED, chunk(b"a"), chunk(b"b") + b"zz\r\n"], "stay", [b"a", b"b*"], False),
    ([head("content-length: 3"), b"a", b"b", b"c"], "stay", [b"a", b"b", b"c*"], True),
    ([head("content-length: 3"), b"a", b"b"], "close", [b"a", b"b"], False),
    ([head(), b"a", b"b"], "close", [b"a", b"b"], True),
    ([CHUNKED, chunk(b"a"), chunk(LARGE), LAST], "stay", [b"a", LARGE[:PIECE_BYTES] + b"*", LARGE[-5:] + b"*"], True),
    (
        [head("transfer-encoding: chunked", "content-encoding: deflate"), chunk(PACKED), LAST],
        "stay",
        [b"a" * 100 + b"*"],
        True,
    ),
    ([CHUNKED + chunk(b"a"), chunk(b"b"), LAST], "stay", [b"a*", b"b"], True),
]


@rows("pieces, end, expected, well", BODIES)
async def test_pieces_are_taken_while_the_reader_waits(
    pieces: list[bytes], end: str, expected: list[bytes], well: bool
) -> None:
    reader = await reading(pieces, end)
    assert (reader.marked, reader.error is None) == (expected, well), reader.error


@rows("pieces, end, expected, well", BODIES)
async def test_what_is_not_taken_is_returned_in_its_place(
    pieces: list[bytes], end: str, expected: list[bytes], well: bool
) -> None:
    reader = await reading(pieces, end, [b"b"])
    assert reader.marked == [piece + b"*" if piece == b"b" else piece for piece in expected]
    assert (reader.error is None) == well, reader.error


async def test_what_arrives_before_the_reader_is_awake_stands_behind_what_he_gets() -> None:
    """Two reads in one turn of the loop, as a faster loop than asyncio's may make them."""
    async with saying([CHUNKED]) as url, session() as client, client.get(url) as response:
        reader = Reader([b"a"])
        reading = asyncio.ensure_future(reader.all(response.content))
        await asyncio.sleep(0.01)
        assert response.connection is not None and isinstance(response.connection.protocol, WatchedProtocol)
        for piece in (chunk(b"a"), chunk(b"b"), chunk(b"c") + LAST):
            response.connection.protocol.data_received(piece)
        await reading
        assert b"".join(piece for _, piece in reader.read) == b"abc"


async def test_what_reading_lets_in_waits_for_nothing() -> None:
    """Of many chunks the parser keeps some back until those before them are read, and then feeds them at once."""
    async with saying([CHUNKED]) as url, session() as client, client.get(url) as response:
        reader, sent = Reader(), b"0123456789" * 2_000
        reading = asyncio.ensure_future(reader.all(response.content))
        await asyncio.sleep(APART_S)
        assert response.connection is not None and isinstance(response.connection.protocol, WatchedProtocol)
        response.connection.protocol.data_received(b"".join(chunk(b"%c" % byte) for byte in sent))
        assert 0 < len(reader.read[0][1]) < len(sent)
        await until(lambda: b"".join(piece for _, piece in reader.read) == sent)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_a_reader_that_is_cancelled_leaves_nothing_behind() -> None:
    async with saying([CHUNKED, *[chunk(b"a")] * 20]) as url, session() as client, client.get(url) as response:
        reader = Reader()
        reading = asyncio.ensure_future(reader.all(response.content))
        await asyncio.sleep(3 * APART_S)
        protocol = response.connection and response.connection.protocol
        assert isinstance(protocol, WatchedProtocol) and protocol.take is not None and reader.read
        reading.cancel()
        protocol.data_received(chunk(b"b"))  # before the reader knows
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert protocol.take is None and response.content._waiter is None
        taken = len(reader.read)
        await asyncio.sleep(3 * APART_S)
        assert len(reader.read) == taken and (False, b"b") not in reader.read
        assert (await response.content.readany()).startswith(b"b")


async def test_the_next_request_of_a_connection_gets_its_own_answer() -> None:
    """The end of an answer gives its connection back before the reader of its body is awake."""
    ports = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.append(writer.get_extra_info("peername")[1])
        for answer in (b"a", b"b", b"c"):
            await reader.readuntil(b"\r\n\r\n")
            for piece in (CHUNKED, chunk(answer), chunk(answer * 2), LAST):
                writer.write(piece)
                await asyncio.sleep(APART_S)
        writer.transport.abort()
        done.set()

    done = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, session() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for answer in (b"a", b"b", b"c"):
            async with client.get(url) as response:
                reader = Reader()
                await reader.all(response.content)
                assert reader.marked == [answer, answer * 2]
        await done.wait()
    assert len(ports) == 1


async def test_it_needs_no_collector() -> None:
    """A reader and its functions are gone when the answer is."""
    gc.collect()
    gc.disable()
    try:
        await reading([CHUNKED, chunk(b"a"), chunk(b"b"), LAST], "stay", [b"b"])
        await asyncio.sleep(0)
        assert not [one for one in gc.get_objects() if isinstance(one, Reader)]
    finally:
        gc.enable()
