"""Answers that are large, or unpack so: others get their turn while one is read, and one that says nothing ends as an
error of its upstream."""

from __future__ import annotations

import asyncio
import gc
import gzip
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from byte_rule import MESSAGES
from byte_table import P1, Table, table_of
from byte_tapes import Row
from openai_live import RESPONSES
from raw_upstream import head
from samples import each
from wires import WIRES, Wire, by_reader

from proxy.auth.http import TokenClient
from proxy.core.outgoing_proxies import OutboundProxies
from proxy.core.sizes import LARGE_BYTES, MAX_RATIO, UNPACKED_BYTES
from proxy.errors import UpstreamError
from proxy.observe.lifecycle import NullLog
from proxy.providers.p1_codex.failures import PROFILE
from proxy.providers.p5_cursor.wire.envelopes import COMPRESSED, END, envelope
from proxy.providers.p5_cursor.wire.protobuf import encode
from proxy.providers.upstream.aiohttp_internals import PIECE_BYTES
from proxy.providers.upstream.client import client_session
from proxy.providers.upstream.event_reader import TOGETHER
from proxy.providers.upstream.transport import HttpTransport, UpstreamRequest
from proxy.sandbox import Sandbox

#: The most work between two turns of the loop, in seconds of this process: how busy a machine is changes nothing.
MOST_S = 0.05
#: Of what packs to a thousandth: a loop that took it at once would be held for seconds.
SIZE = 3_000_000
TOO_LARGE = f"unpacks to more than {MAX_RATIO} times"


@contextmanager
def turns(pause_s: float = 0.001) -> Iterator[list[float]]:
    """The work between each two turns of the loop. One that turns without a pause takes time from what works beside it;
    with one, some turns are counted together."""
    gaps: list[float] = []

    async def count() -> None:
        last = time.process_time()
        while True:
            await asyncio.sleep(pause_s)
            now = time.process_time()
            gaps.append(now - last)
            last = now

    gc.collect()  # a collection would count as work
    gc.disable()
    counting = asyncio.create_task(count())
    try:
        yield gaps
    finally:
        counting.cancel()
        gc.enable()


def tape(body: bytes, *, status: str = "200 OK", kind: str = "text/event-stream", packed: bool = True) -> bytes:
    """An answer as it stands on the wire."""
    sent = gzip.compress(body, 6) if packed else body
    lines = (f"content-length: {len(sent)}", *(["content-encoding: gzip"] if packed else []))
    return head(*lines, status=status, kind=kind) + sent


def _events(wire: Wire, count: int) -> bytes:
    """Events that say nothing."""
    if not wire.traits.run:
        return b"data: {}\n\n" * count
    return envelope(encode("AgentServerMessage", {"interaction_update": {"heartbeat": {}}})) * count


_JSON = "application/json"
_VALUES = b'{"a":[' + b"[]," * (SIZE // 3) + b"[]]}"
_ERROR = b'{"error":{"message":"' + b"no " * (SIZE // 3) + b'"}}'
#: What is answered -> what becomes of it.
ANSWERS: dict[str, tuple[bytes, str]] = {
    "line feeds": (tape(b"\n" * SIZE), TOO_LARGE),
    "comments": (tape(b":\n\n" * (SIZE // 3)), TOO_LARGE),
    "empty data": (tape(b"data\n\n" * (SIZE // 6)), TOO_LARGE),
    "one event": (tape(b'data: {"a":"' + b"a" * SIZE), TOO_LARGE),
    "JSON for a stream": (tape(_VALUES, kind=_JSON), TOO_LARGE),
    "blanks for JSON": (tape(b"\n" * SIZE, kind=_JSON), TOO_LARGE),
    "an error": (tape(_ERROR, status="400 Bad Request", kind=_JSON), "status 400"),
}
_PACKED_ZEROS = envelope(gzip.compress(bytes(SIZE)), COMPRESSED)
#: The same of a run.
RUNS: dict[str, tuple[bytes, str]] = {
    "line feeds": (ANSWERS["line feeds"][0], "HTTP/2 only"),
    "empty messages": (tape(envelope(b"") * (SIZE // 5)), TOO_LARGE),
    "a packed message": (tape(_PACKED_ZEROS, packed=False), "an envelope that unpacks to more"),
    "a packed message behind others": (
        tape(envelope(b"") * 9 + _PACKED_ZEROS, packed=False),
        "an envelope that unpacks",
    ),
    "a packed end": (
        tape(envelope(gzip.compress(_VALUES), COMPRESSED | END), packed=False),
        "an envelope that unpacks",
    ),
    "a long end": (tape(envelope(_VALUES[: 1 << 20], END), packed=False), "an end of"),
    "an error": ANSWERS["an error"],
}


@asynccontextmanager
async def playing(sandbox: Sandbox, root: Path, wire: Wire, answers: list[bytes]) -> AsyncIterator[Table]:
    """A table whose rows from 1 on are these. Nothing is slow any more because it is done for the first time."""
    async with table_of(sandbox, root, wire) as table:
        for path in (MESSAGES, RESPONSES):
            await table.answer(path, True, "hello")
        table.tapes.rows = {number: Row(answer, len(answer), "") for number, answer in enumerate(answers, 1)}
        yield table


@each(1, by_reader)
@pytest.mark.parametrize("wire", [P1, *WIRES], ids=str)
async def test_what_unpacks_large_holds_nobody_up(sandbox: Sandbox, tmp_path: Path, wire: Wire) -> None:
    rows = RUNS if wire.traits.run else ANSWERS
    async with playing(sandbox, tmp_path, wire, [answer for answer, _ in rows.values()]) as table:
        for number, (name, (_, words)) in enumerate(rows.items(), 1):
            for path in (MESSAGES, RESPONSES) if wire == P1 else (MESSAGES,):
                await _is_refused(table, number, f"{path} {name}", path, words)


async def _is_refused(table: Table, number: int, name: str, path: str, words: str) -> None:
    answer = None
    with turns() as gaps:
        try:
            answer = await table.answer(path, True, f"row-{number}- hello")
        except aiohttp.ClientPayloadError:  # a stream that was passed on breaks off, which no client takes for an end
            assert table.is_passed_on(path), name
    assert max(gaps) < MOST_S, name
    if answer is not None:
        said = answer.json["error"]
        assert answer.status == 502 or (answer.status, words) == (400, "status 400"), (name, said)
        assert words in said["message"] and said["provider"] == table.wire.label, (name, said)


@each(1, by_reader)
@pytest.mark.parametrize("wire", [P1, *WIRES], ids=str)
async def test_events_that_say_nothing_hold_nobody_up(sandbox: Sandbox, tmp_path: Path, wire: Wire) -> None:
    kind = "application/connect+proto" if wire.traits.run else "text/event-stream"
    count = 6_000
    bodies = [tape(_events(wire, count), kind=kind, packed=packed) for packed in (True, False)]
    async with playing(sandbox, tmp_path, wire, bodies) as table:
        for number in (1, 2):
            with turns(0) as gaps:
                answer = await table.answer(MESSAGES, True, f"row-{number}- hello")
            assert answer.status == 502 and "cut the answer" in answer.json["error"]["message"], answer.raw
            assert max(gaps) < MOST_S and len(gaps) > count / TOGETHER


@asynccontextmanager
async def answering(body: bytes, packed: bytes | None = None) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """A service with this answer."""
    headers = {} if packed is None else {"content-encoding": "gzip"}

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=body if packed is None else packed, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/", answer)
    async with TestServer(app) as server, client_session(OutboundProxies()) as session:
        yield session, str(server.make_url("/"))


def transport(session: aiohttp.ClientSession) -> HttpTransport:
    return HttpTransport(PROFILE, session, NullLog(), lambda: 0.0)


async def test_a_body_comes_in_pieces_with_a_turn_between_them() -> None:
    size = 100 * PIECE_BYTES
    async with answering(bytes(size)) as (session, url), session.get(url) as response:
        with turns(0) as gaps:
            pieces = [len(piece) async for piece in response.content.iter_any()]
    assert sum(pieces) == size and max(pieces) == PIECE_BYTES and len(gaps) >= 90


@pytest.mark.parametrize(("size", "taken"), [(UNPACKED_BYTES, True), (2 * UNPACKED_BYTES, False)])
async def test_a_body_may_be_so_much_longer_than_what_came(size: int, taken: bool) -> None:
    async with answering(b"", gzip.compress(bytes(size))) as (session, url), session.get(url) as response:
        if taken:
            assert sum([len(piece) async for piece in response.content.iter_any()]) == size
            return
        with pytest.raises(aiohttp.ClientPayloadError, match=TOO_LARGE):
            async for _ in response.content.iter_any():
                pass


async def test_a_whole_answer_is_parsed_beside_the_loop() -> None:
    values = 20_000
    body = b'{"a": "%s", "b": [%s1]}' % (b"a, " * 1_000_000, b"1," * (values - 1))
    async with answering(body) as (session, url):
        with turns() as gaps:
            answer = await transport(session).json(UpstreamRequest(url, {}, b"{}", "r", 1))
    assert len(answer["a"]) == 3_000_000 and answer["b"] == [1] * values
    assert max(gaps) < MOST_S


async def test_a_long_event_is_parsed_beside_the_loop() -> None:
    values = 100_000
    body = b'data: {"type":"response.completed","a":[%s1]}\n\n' % (b"1," * (values - 1))
    assert len(body) > LARGE_BYTES
    async with answering(body) as (session, url):
        with turns() as gaps:
            ((event,),) = [batch async for batch in transport(session).stream(UpstreamRequest(url, {}, b"{}", "r", 1))]
    assert event["a"] == [1] * values and max(gaps) < MOST_S


_MANY = b'"a":[' + b"[]," * (SIZE // 3) + b"[]]"
#: Events and frames that took long to read or to mask, streamed as they come and of a whole answer.
LONG: dict[str, bytes] = {
    "a last event": b'event: response.completed\ndata: {"type":"response.completed","response":{%b}}\n\n' % _MANY,
    "a last event by its type": b'data: {"type":"response.completed","response":{%b}}\n\n' % _MANY,
    "an event that is called an error": b'event: error\ndata: {"error":{"message":"no"},%b}\n\n' % _MANY,
    "a failure": b'data: {"type":"response.failed","response":{"error":{"message":"no"},%b}}\n\n' % _MANY,
    "a frame of lines": b"x\n" * (SIZE // 2) + b"\n",
    "a frame of data": b"data:\n" * (SIZE // 6) + b"\n",
    "a frame of comments": b":\n" * (SIZE // 12) + b"\ndata: {}\n\n",
    "a failure with much that may be data": b'data: {"type":"error","error":{"message":"%b"}}\n\n'
    % ((b"=" + b"A" * 60) * 4000),
}


@each(1, by_reader)
@pytest.mark.parametrize("wire", [P1, *(wire for wire in WIRES if not wire.traits.run)], ids=str)
async def test_long_events_hold_nobody_up(sandbox: Sandbox, tmp_path: Path, wire: Wire) -> None:
    routes = [(MESSAGES, True), (RESPONSES, True), (RESPONSES, False)] if wire == P1 else [(MESSAGES, True)]
    async with playing(sandbox, tmp_path, wire, [tape(body, packed=False) for body in LONG.values()]) as table:
        for number, name in enumerate(LONG, 1):
            for path, stream in routes:
                passed_on = stream and table.is_passed_on(path)
                with turns() as gaps:
                    try:
                        answer = await table.answer(path, stream, f"row-{number}- hello")
                    except aiohttp.ClientPayloadError:
                        assert passed_on, name
                    else:
                        assert answer.status >= 500 or (passed_on and b"error" in answer.raw), (name, answer.raw[:300])
                assert max(gaps) < MOST_S, (name, path, stream)


async def test_too_many_values_are_no_answer() -> None:
    async with answering(b'{"a":[' + b"[]," * 1_000_000 + b"[]]}") as (session, url):
        with turns() as gaps, pytest.raises(UpstreamError, match="not a JSON object"):
            await transport(session).json(UpstreamRequest(url, {}, b"{}", "r", 1))
    assert max(gaps) < MOST_S


@pytest.mark.parametrize("body", [b"\n" * SIZE, _VALUES], ids=["blanks", "values"])
async def test_an_answer_of_a_sign_in_service_has_its_limit(body: bytes) -> None:
    async with answering(b"", gzip.compress(body)) as (session, url):
        with turns() as gaps, pytest.raises(UpstreamError, match=r"longer than|UnpacksTooLarge"):
            await TokenClient("p9", session).get(url)
    assert max(gaps) < MOST_S


async def test_an_answer_of_a_sign_in_service_is_parsed_beside_the_loop() -> None:
    async with answering(b'{"a":[' + b'{"a":{}},' * 80_000 + b"1]}") as (session, url):
        with turns() as gaps:
            answer = await TokenClient("p9", session).get(url)
    assert len(answer.data["a"]) == 80_001
    assert max(gaps) < MOST_S
