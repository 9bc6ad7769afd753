"""Answers that are damaged at each class of their bytes, for each wire and route, streamed and whole; all rows are
judged by one rule (`byte_rule`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from byte_table import P1, SOCKET, table_of
from samples import each
from wires import WIRES, Wire, by_reader

from proxy.sandbox import Sandbox


@each(1, by_reader)
@pytest.mark.parametrize("wire", [P1, SOCKET, *WIRES], ids=str)
async def test_a_damaged_answer_is_an_error_or_the_good_one(sandbox: Sandbox, tmp_path: Path, wire: Wire) -> None:
    async with table_of(sandbox, tmp_path, wire) as table:
        await table.record()
        failures = await table.check()
        assert not failures, "\n".join(failures)
        await table.nothing_left()
