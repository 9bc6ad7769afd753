"""What images cost a process that serves: memory while many large ones arrive, and while one goes to a slow reader."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from harness import Answer
from media_live import EDITS, GENERATIONS, GOOD, PNG, Form, head, part, read_answer
from processes import Proxy

from proxy.sandbox import Sandbox

MIB = 1024 * 1024
#: What all bodies together may take.
SUM = 128 * MIB
#: An edit of 24 MB has three files.
FILE = 8_000_000
#: Beside the bodies: code that is loaded with the first one, buffers of the connections.
REST = 40 * MIB


@pytest.fixture
async def proxy(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Proxy]:
    sandbox.write_credentials(tmp_path / "config")
    async with Proxy(
        tmp_path, PROXY_P1_IMAGES_API="1", PROXY_MAX_BUFFERED_REQUEST_BYTES=str(SUM), **sandbox.settings()
    ) as running:
        yield running


def peak(proxy: Proxy) -> int:
    """The most resident bytes that there ever were."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{proxy.process.pid}/status").read_text())
    assert found
    return int(found[1]) * 1024


def large_edit() -> Iterator[bytes]:
    """A request, in pieces that all of them share."""
    form = large_form()
    yield head(EDITS, form.content_type, Content_Length=len(form.body) + 3 * (FILE - 6))
    yield from pieces_of(form)


def packed_edit() -> Iterator[bytes]:
    """The same with a content encoding, which makes pieces of all sizes of it."""
    form = large_form()
    yield head(EDITS, form.content_type, Transfer_Encoding="chunked", Content_Encoding="gzip")
    packer = zlib.compressobj(0, wbits=31)
    for piece in pieces_of(form):
        yield chunk(packer.compress(piece))
    yield chunk(packer.flush()) + b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def large_form() -> Form:
    return Form((part("prompt", "x"), *(part("image", PNG + b"<file>", "a.png") for _ in range(3))))


def pieces_of(form: Form) -> Iterator[bytes]:
    first, *rest = form.body.split(b"<file>")
    yield first
    block = bytes(256 * 1024)
    for behind in rest:
        for start in range(0, FILE, len(block)):
            yield block[: FILE - start]
        yield behind


async def sent(proxy: Proxy, request: Iterator[bytes]) -> Answer:
    """The answer to a request that is sent until there is one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    answer = asyncio.ensure_future(read_answer(reader, 60))
    for piece in request:
        if answer.done() or writer.is_closing():
            break
        writer.write(piece)
        await writer.drain()
    try:
        return await answer
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("request_of", [large_edit, packed_edit])
async def test_memory_is_bounded_while_many_large_edits_arrive(
    sandbox: Sandbox, proxy: Proxy, request_of: Callable[[], Iterator[bytes]]
) -> None:
    before = proxy.memory
    answers = await asyncio.gather(*(sent(proxy, request_of()) for _ in range(20)))
    counted = Counter(answer.status for answer in answers)
    assert set(counted) == {200, 429} and counted[200] >= 2, counted
    assert all(answer.headers["Retry-After"] == "1" for answer in answers if answer.status == 429)
    assert peak(proxy) - before < SUM + REST, (peak(proxy) - before) / MIB
    assert (await sent(proxy, request_of())).status == 200
    assert proxy.memory - before < REST, (proxy.memory - before) / MIB  # what is not needed goes back


async def test_a_large_answer_for_a_slow_reader_is_held_once(sandbox: Sandbox, proxy: Proxy) -> None:
    sandbox.p1.script.extend([{"fault": "large", "size": 75 * MIB}])
    before = proxy.memory
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, limit=64 * 1024)
    body, called = GOOD[GENERATIONS]
    writer.write(head(GENERATIONS, called, Content_Length=len(body)) + body)
    async with asyncio.timeout(30):
        answer = await reader.readuntil(b"\r\n\r\n")
    size = left = int(answer.lower().partition(b"content-length: ")[2].split()[0])
    async with asyncio.timeout(30):
        while left:
            left -= len(await reader.read(MIB))
            await asyncio.sleep(0.001)
    assert size > 100 * MIB and peak(proxy) - before < 1.2 * size, (peak(proxy) - before) / size
    writer.close()
