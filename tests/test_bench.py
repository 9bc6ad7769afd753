"""The benchmark's own parts: what it asks for is what its upstream plays, in a form that the proxy understands."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from harness import Live, with_live
from samples import rows

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "lib"))

from bench import calls
from bench.answers import answer, asked, question
from bench.load import NUMBER, Load, Seen, percentile
from bench.process import Account, Process
from bench.rows import ROWS, WIRES, Row
from bench.run import Result, chosen_rows, together


@rows("row", ROWS)
def test_a_request_says_how_its_answer_is_played(row: Row) -> None:
    body = row.body()
    assert asked(body) == (row.texts, row.every_ms) and body.count(NUMBER) == 1
    assert (len(body) > 80_000) is row.agent


def test_what_is_no_request_of_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the benchmark"):
        asked(b"{}")
    assert asked((question(1, 2) + question(3, 4)).encode()) == (3, 4)


@pytest.mark.parametrize("kind", calls.KINDS[::5], ids=lambda kind: kind.name)
async def test_calls_are_those_of_the_product(kind: calls.Kind) -> None:
    """How many they are depends on the reads that an answer comes in, so there is no limit here."""
    counted = await calls.counted(kind)
    files = {file for file, _ in counted.functions}
    assert {"server/serving/serve.py", "server/request/ledger.py"} <= files
    assert not any(file.startswith("sandbox/") for file in files)


def test_names_tell_rows_apart() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) and {row.wire for row in ROWS} == {*WIRES}
    assert chosen_rows(None) == [*ROWS] and chosen_rows(["nothing has this"]) == []
    assert {row.wire for row in chosen_rows(["p5 tiny", "p3"])} == {"p3", "p5"}


@pytest.mark.parametrize("name", WIRES)
@with_live(p1_transport="http")
async def test_the_proxy_reads_what_the_upstream_plays(live: Live, name: str) -> None:
    wire, provider = WIRES[name], name[:2]
    if wire.path:
        body = b"".join(answer(wire.path, 12)).decode()
        live.sandbox[provider].script.extend([{"provider": provider, "events": [{"raw": body}]}])
    asked_for = {"role": "user", "content": question(12, 0)}
    said = await live.post({"model": wire.model, "max_tokens": 99, "messages": [asked_for]})
    assert len(said.json["content"][-1]["text"].split()) == 12
    assert not wire.path or said.json["usage"]["output_tokens"] == 12


def test_slices_are_shown_by_their_medians() -> None:
    slices = [
        Result("row", "proxy", cpu, 10 * cpu, Seen(cpu, 2 * cpu, 3 * cpu, 4 * cpu, 0.0, 0.0), 50.0, 1.0, 9)
        for cpu in (1.0, 9.0, 2.0)
    ]
    found = together(slices)
    assert (found.cpu_ms, found.text_us, found.seen.first_99, found.program) == (2.0, 20.0, 4.0, "proxy")
    assert "| 2.00 ms | 4.0 |" in found.line(0.5) and "| 2.00 ms |  |" in found.line(None)


async def served(*pieces: bytes) -> Seen:
    """What is seen of an answer that comes in these pieces."""
    writers: list[asyncio.StreamWriter] = []

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        # The other connection is that of the probe, which goes when the run ends.
        for piece in pieces if (await reader.read(1 << 16)).startswith(b"POST") else ():
            writer.write(piece)
            await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        try:
            return await Load(urlsplit(f"http://127.0.0.1:{port}/"), b"BODY", 2).run(1, 1)
        finally:
            for writer in writers:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()


HEAD, END = b"HTTP/1.1 200 OK\r\n\r\n", b"\r\n0\r\n\r\n"


async def test_a_whole_answer_is_seen() -> None:
    seen = await served(HEAD, b"a wo", b"rd0 word", b"1", END[:3], END[3:])
    assert 0 < seen.first_median <= seen.whole_median


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ((HEAD, b"word0 ", b"event: error", END), "1 texts of 2: "),
        ((HEAD, b"word0 word1 "), "closed"),
        ((b"HTTP/1.1 529 Overloaded\r\n\r\n", b"word0 word1 ", END), "2: HTTP/1.1 529"),
    ],
    ids=["an error at its end", "cut", "refused"],
)
async def test_an_answer_that_is_not_whole_ends_the_run(pieces: tuple[bytes, ...], said: str) -> None:
    with pytest.raises((RuntimeError, ConnectionError), match=said):
        await served(*pieces)


async def test_the_account_knows_threads_that_ended_and_children() -> None:
    account = Account(os.getpid())
    before = account.cpu_s()
    thread = threading.Thread(target=sum, args=(range(1_000_000),))
    thread.start()
    thread.join()
    spent = account.cpu_s() - before
    assert spent > 0.001
    async with AsyncExitStack() as stack:
        resident = account.resident_mb()
        child = await Process.start(stack, "-c", "import time; print('begun', flush=True); time.sleep(60)")
        assert child.first_line == "begun\n" and child.resident_mb() > 1 and child.descriptors() >= 3
        assert account.resident_mb() > resident + 1 and account.descriptors() > child.descriptors()


@rows("share, value", [(0.0, 1.0), (0.5, 3.0), (0.99, 4.0), (1.0, 4.0)])
def test_percentiles(share: float, value: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == value
