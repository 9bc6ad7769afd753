"""Upgrades that are damaged at each class of their bytes, and sockets that are closed in each way: judged by the one
rule of all damaged answers (`byte_rule`)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from byte_rule import MESSAGES, MOST_ATTEMPTS, judge
from byte_table import SOCKET, TOGETHER, Table, table_of
from byte_tapes import ACCEPT, DAMAGES, SWITCH, Row
from samples import Extent

from proxy.sandbox import Sandbox

#: Bytes of the head of a good answer -> where they begin.
PLACES = {
    "nothing": 0,
    "status line": 5,
    "status": SWITCH.index(b"101"),
    "header": SWITCH.index(b"Upgrade:") + 3,
    "between headers": SWITCH.index(b"Connection:"),
    "key": SWITCH.index(ACCEPT) + 14,
    "end of the head": len(SWITCH) - 2,
    "behind the head": len(SWITCH),
}
#: What stands in the place of the head's beginning, up to its headers.
FIRST_LINES = (
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 100 Continue\r\n",
    b"HTTP/1.1 199 Odd\r\n",
    b"HTTP/1.1 999 Odd\r\n",
    b"HTTP/1.1 1010 Switching\r\n",
    b"HTTP/9.9 101 Switching Protocols\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\x16\x03\x01\x02\x00\x01\r\n",
)
#: Close frames: without a code, with each that a peer may meet, and with what is none.
CLOSES = {
    "no code": b"",
    **{str(code): code.to_bytes(2, "big") for code in (1000, 1001, 1006, 1008, 1009, 1011, 1012, 1013, 4000, 5, 65535)},
    "half a code": b"\x03",
    "words": b"\x03\xf3going away",
    "words that are no text": b"\x03\xe9\xff\xfe",
    "too many words": b"\x03\xe9" + b"w" * 200,
}


#: Where one comes.
CUTS = ("in front of all", "between frames", "in front of the terminal frame", "behind the terminal frame")


@pytest.fixture
async def table(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Table]:
    async with table_of(sandbox, tmp_path, SOCKET) as made:
        await made.record()
        yield made
        made.tapes.upgrade = None
        await made.nothing_left()


def upgrades() -> Iterator[tuple[str, Row]]:
    for (place, at), damage in itertools.product(PLACES.items(), DAMAGES):
        yield f"{damage} {place}", Row(SWITCH, at, damage)
    rest = SWITCH.partition(b"\r\n")[2]
    for line in FIRST_LINES:
        yield line.decode("latin-1"), Row(SWITCH, 0, "cut", line + rest)


async def test_a_damaged_upgrade_is_an_error_or_tried_again(table: Table) -> None:
    """One after another: an upgrade names no request."""
    tape, _ = table.good["text"]
    failures, numbers = [], itertools.count(1)
    table.tapes.rows[0] = Row(tape, 0, "")
    good = await table.content(0, MESSAGES, True, "text")
    assert good is not None
    for name, upgrade in upgrades():
        number, table.tapes.upgrade = next(numbers), upgrade
        row = table.tapes.rows[number] = Row(tape, len(tape), "")
        try:
            answer = await table.content(number, MESSAGES, number % 2 == 0, "text")
            assert answer in (None, good), answer
            assert row.attempts <= MOST_ATTEMPTS and (row.attempts or answer is None), f"{row.attempts} attempts"
            assert 1 <= upgrade.attempts <= MOST_ATTEMPTS, f"{upgrade.attempts} upgrades"
        except Exception as error:
            failures.append(f"{name}: {error!r}"[:400])
    assert not failures, "\n".join(failures)


def closes(tape: bytes, places: dict[str, int]) -> Iterator[tuple[str, Row]]:
    for (name, data), place in itertools.product(CLOSES.items(), CUTS):
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
        yield f"{name} {place}", Row(tape, places[place], "cut", b"\x88" + size + data)


async def test_a_socket_that_is_closed_is_an_error_or_the_good_answer(table: Table) -> None:
    tape, found = table.good["text"]
    failures, numbers = list[str](), itertools.count(1)
    table.tapes.rows[0] = Row(tape, 0, "")
    good = await table.content(0, MESSAGES, True, "text")
    assert good is not None

    gate = asyncio.Semaphore(TOGETHER)

    async def run(name: str, row: Row, stream: bool) -> None:
        number = next(numbers)
        table.tapes.rows[number] = row
        try:
            async with gate:
                judge(row, found.complete, good, await table.content(number, MESSAGES, stream, "text"))
        except Exception as error:
            failures.append(f"{name} {stream}: {error!r}"[:400])

    async with asyncio.TaskGroup() as group:
        for number, (name, row) in enumerate(closes(tape, found.classes)):
            in_turn = (number + number // len(CUTS)) % 2 == 0  # in a sample of the suite streamed or whole
            for stream in (True, False) if Extent.everything else (in_turn,):
                group.create_task(run(name, replace(row), stream))
    assert not failures, "\n".join(sorted(failures))
