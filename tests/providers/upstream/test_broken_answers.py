"""Answers whose framing is broken, at every reader: each notices at once, and the connection is not used again."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
import pytest
from aiohttp import client_proto, http_parser
from raw_upstream import chunk, head, saying
from samples import each

from proxy.auth.http import TokenClient
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.errors import ProxyError, UpstreamError
from proxy.observe.lifecycle import NullLog
from proxy.providers.contract import NativeEnd
from proxy.providers.p1_codex.native.relay import RelayObserver, aggregated, relayed
from proxy.providers.p5_cursor.run.channels import EnvelopeStream
from proxy.providers.upstream.client import client_session, read_error
from proxy.providers.upstream.failures import upstream_error
from proxy.providers.upstream.transport import HttpTimers, HttpTransport, UpstreamProfile, UpstreamRequest

PROFILE = UpstreamProfile("p9", "toy", lambda event: "last" in event, partial(upstream_error, "p9"))
#: Far more than noticing takes, far less than any timer.
AT_ONCE_S = 2.0

EVENT = b'data: {"a": 1}\n\n'
LAST = b'data: {"last": true}\n\n'
CHUNKED = head("transfer-encoding: chunked")
PACKED = head("transfer-encoding: chunked", "content-encoding: gzip")
DEFLATED = head("transfer-encoding: chunked", "content-encoding: deflate")
GZIP = gzip.compress(EVENT)


def chunked(*rest: bytes) -> tuple[bytes, ...]:
    return (CHUNKED, chunk(EVENT), *rest)


def sized(*lengths: str) -> tuple[bytes, ...]:
    return head(*(f"content-length: {length}" for length in lengths)), EVENT


#: What is said -> how the connection goes on behind it.
FAULTS: dict[str, tuple[tuple[bytes, ...], tuple[str, ...]]] = {
    "size is no number": (chunked(b"zz\r\nabc\r\n"), ("stay",)),
    "size below nothing": (chunked(b"-5\r\nabc\r\n"), ("stay",)),
    "size of 68 bits": (chunked(b"f" * 17 + b"\r\nabc\r\n"), ("stay",)),
    "size without end": (chunked(b"1" * 200_000), ("stay",)),
    "size ends in LF alone": (chunked(b"3\nabc\n"), ("stay",)),
    "chunk without CRLF": (chunked(b"3\r\nabcX3\r\n"), ("stay",)),
    "chunk longer than its size": (chunked(b"2\r\nabc\r\n"), ("stay",)),
    "extension with LF": (chunked(b"3;a\nb\r\nabc\r\n"), ("stay",)),
    "extension of control characters": (chunked(b"3;\x00\x01=\x7f\r\nabc\r\n"), ("stay",)),
    "empty line for a size": (chunked(b"\r\nabc"), ("stay",)),
    "page among the chunks": (chunked(b"<html>Bad gateway</html>\r\n"), ("stay",)),
    "trailer of garbage": (chunked(b"0\r\n\x00\x01garbage\r\n\r\n"), ("stay",)),
    "trailer without end": (chunked(b"0\r\nx: " + b"y" * 200_000), ("stay",)),
    "too many trailers": (chunked(b"0\r\n" + b"x: y\r\n" * 5000), ("stay",)),
    "cut in a size": (chunked(b"1"), ("close", "half", "reset")),
    "cut in a chunk": (chunked(b"9\r\nabc"), ("close", "half", "reset")),
    "cut between chunks": (chunked(), ("close", "half", "reset")),
    "cut in a trailer": (chunked(b"0\r\nx: y"), ("close", "half", "reset")),
    "cut behind the head": ((CHUNKED,), ("close", "half", "reset")),
    "cut before the length": (sized("999"), ("close", "half", "reset")),
    "length that is none": (sized("abc"), ("stay",)),
    "length below nothing": (sized("-3"), ("stay",)),
    "two lengths": (sized("30", "31"), ("stay",)),
    "length and chunks": ((head("content-length: 5", "transfer-encoding: chunked"), chunk(EVENT)), ("stay",)),
    "length too short": (sized("5"), ("stay",)),
    "reset without framing": ((head(), EVENT), ("reset",)),
    "head of garbage": ((b"SSH-2.0-OpenSSH_9.2\r\n\r\n",), ("stay",)),
    "header without colon": ((b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",), ("stay",)),
    "head without end": ((b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000,), ("stay",)),
    "cut in the head": ((b"HTTP/1.1 200 OK\r\nx: y",), ("close", "half", "reset")),
    "no head": ((), ("close", "half", "reset")),
    "packed in another way": ((PACKED, chunk(b"hello there")), ("stay",)),
    "checksum of gzip": ((PACKED, chunk(GZIP[:-8] + bytes(8))), ("stay",)),
    "junk behind gzip": ((PACKED, chunk(GZIP + b"junk, and more")), ("stay",)),
    "too many members of gzip": ((PACKED, chunk(gzip.compress(b"") * 2000)), ("stay",)),
    "deflate that is cut": (
        (
            head("transfer-encoding: chunked", "content-encoding: deflate"),
            chunk(zlib.compress(EVENT)[:-5]),
            b"0\r\n\r\n",
        ),
        ("stay",),
    ),
}
ROWS = [(name, end) for name, (_, ends) in FAULTS.items() for end in ends]

Reader = Callable[[aiohttp.ClientSession, str], Awaitable[Any]]


def transport(session: aiohttp.ClientSession) -> HttpTransport:
    return HttpTransport(PROFILE, session, NullLog(), lambda: 0.0, timers=HttpTimers(idle=30.0))


def request(url: str, body: bytes = b"{}") -> UpstreamRequest:
    return UpstreamRequest(url, {}, body, "r", 1)


async def events(session: aiohttp.ClientSession, url: str) -> None:
    async for _ in transport(session).stream(request(url)):
        pass


async def relay(session: aiohttp.ClientSession, url: str) -> None:
    way, end = transport(session), NativeEnd()
    async with way.open(request(url)) as answer:
        async for _ in relayed(way, answer, RelayObserver(end, 0.0)):
            pass
    if end.failure is not None:
        raise end.failure


async def object_of_a_stream(session: aiohttp.ClientSession, url: str) -> None:
    way = transport(session)
    async with way.open(request(url)) as answer:
        await aggregated(way, answer, now=0.0)


async def envelopes(session: aiohttp.ClientSession, url: str) -> None:
    try:
        async with session.post(url) as response:
            stream = EnvelopeStream(response)
            while await stream.read() is not None:
                pass
            assert stream.cut
    except aiohttp.ClientError as error:
        raise UpstreamError(str(error)) from None
    raise UpstreamError("cut")


async def token(session: aiohttp.ClientSession, url: str) -> None:
    answer = await TokenClient("p9", session).post_json(url, {})
    assert not answer.data
    raise UpstreamError("no token")


READERS: list[Reader] = [
    events,
    lambda session, url: transport(session).json(request(url)),
    relay,
    object_of_a_stream,
    envelopes,
    token,
]


@each(1)
@pytest.mark.parametrize(("name", "end"), ROWS)
async def test_every_reader_notices_at_once(name: str, end: str) -> None:
    async with saying(FAULTS[name][0], end) as url, client_session(OutboundProxies()) as session:

        async def read(reader: Reader) -> None:
            with pytest.raises(ProxyError):
                await reader(session, url)

        async with asyncio.timeout(AT_ONCE_S):
            await asyncio.gather(*map(read, READERS))


#: Python takes them for sizes, or waits for more.
TAKEN = {"size of 68 bits", "size ends in LF alone", "extension of control characters"}
BODIES = {name for name, (pieces, _) in FAULTS.items() if pieces[:2] == chunked()} - TAKEN


@pytest.mark.parametrize("name", sorted(BODIES))
async def test_so_does_the_parser_in_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one in C waits no differently; this one has errors of its own."""
    monkeypatch.setattr(client_proto, "HttpResponseParser", http_parser.HttpResponseParserPy)
    pieces, ends = FAULTS[name]
    async with saying(pieces, ends[0]) as url, client_session(OutboundProxies()) as session:
        async with asyncio.timeout(AT_ONCE_S):
            with pytest.raises(UpstreamError):
                await events(session, url)


async def test_the_words_of_a_refusal_are_what_came_of_them() -> None:
    pieces = [head("transfer-encoding: chunked", status="400 X"), chunk(b"Too much."), b"zz\r\n"]
    async with saying(pieces) as url, client_session(OutboundProxies()) as session, session.post(url) as response:
        await asyncio.sleep(0.05)
        async with asyncio.timeout(AT_ONCE_S):
            assert await read_error(response) == b"Too much."


@pytest.mark.parametrize("end", ["stay", "reset"])
async def test_what_came_before_a_fault_is_read(end: str) -> None:
    """An answer that is whole stays one, whatever comes behind it."""
    async with saying(chunked(chunk(LAST), b"zz\r\n"), end) as url, client_session(OutboundProxies()) as session:
        batches = transport(session).stream(request(url))
        assert await anext(batches) == [{"a": 1}]
        await asyncio.sleep(0.1)  # a slow client
        assert [batch async for batch in batches] == [[{"last": True}]]


async def test_an_upload_that_nobody_reads_does_not_hold_the_end_of_the_connection() -> None:
    async with saying([], "half") as url, client_session(OutboundProxies()) as session, asyncio.timeout(AT_ONCE_S):
        with pytest.raises(UpstreamError):
            await transport(session).json(request(url, bytes(20_000_000)))


@pytest.mark.parametrize("apart", [True, False])
async def test_what_is_said_unasked_is_no_answer_to_the_next_request(apart: bool) -> None:
    answer = head("content-length: 12", kind="application/json") + b'{"fresh": 1}'
    stale = head("content-length: 12", kind="application/json") + b'{"stale": 1}'
    pieces = [answer, stale] if apart else [answer + stale]
    async with saying(pieces) as url, client_session(OutboundProxies()) as session, asyncio.timeout(AT_ONCE_S):
        for _ in range(2):
            assert await transport(session).json(request(url)) == {"fresh": 1}
            await asyncio.sleep(0.05)


async def test_members_of_gzip_are_one_body() -> None:
    pieces = [PACKED, chunk(GZIP + gzip.compress(LAST)), b"0\r\n\r\n"]
    async with saying(pieces) as url, client_session(OutboundProxies()) as session:
        assert [batch async for batch in transport(session).stream(request(url))] == [[{"a": 1}, {"last": True}]]
