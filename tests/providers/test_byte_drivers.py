"""An answer that is damaged at a class of its bytes comes out the same by the pump and by the generators, to the
byte."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from byte_table import P1, PROMPTS, Table, table_of
from byte_tapes import Row
from drivers import MESSAGES, Compared, Played
from openai_live import CHAT, RESPONSES
from samples import Extent, each, sampled, walk
from wires import BODY_WIRES, Wire, by_reader

from proxy.sandbox import Sandbox


@each(1, by_reader)
@pytest.mark.parametrize("wire", [P1, *BODY_WIRES], ids=str)
async def test_a_damaged_answer_comes_out_the_same_by_each_driver(sandbox: Sandbox, tmp_path: Path, wire: Wire) -> None:
    compared = Compared()
    routes = [path for path in (MESSAGES, CHAT, RESPONSES) if not (wire == P1 and path == RESPONSES)]
    async with table_of(sandbox, tmp_path, wire, pace=True, clock=lambda: 1_790_000_000.0) as table:
        await table.record()
        with walk() as row:
            for path in routes if Extent.everything else [MESSAGES]:
                for name, prompt, damaged in sampled(table.rows(path, True), 1, differs):
                    with row((path, name)):
                        await compared.same(partial(play, table, path, prompt, damaged))
        await table.nothing_left()
    compared.are_different()


def differs(name: str, _prompt: str, row: Row) -> tuple[str, str]:
    """What makes a difference: each damage, and each place."""
    return row.damage, name.partition(" " + row.damage)[2]


async def play(table: Table, path: str, prompt: str, row: Row) -> Played:
    number = len(table.tapes.rows) + 1
    table.tapes.rows[number] = row = replace(row)
    table.live.sleeps.clear()
    answer = await table.answer(path, True, f"row-{number}- {PROMPTS[prompt]}")
    return Played(answer.status, answer.raw, row.attempts, tuple(table.live.sleeps))
