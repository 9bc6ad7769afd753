"""Answers with pictures and transcripts that are damaged at each class of their bytes: judged by the one rule of all
damaged answers (`byte_rule`), which here is an error, or the upstream's own bytes."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from byte_places import whole_places
from byte_rule import judge
from byte_table import BOUND_S, P1, Table, table_of
from byte_tapes import DAMAGES, Row
from harness import Answer
from media_live import EDITS, GENERATIONS, SWITCHES, TRANSCRIPTIONS, edit, recording, refusal, send

from proxy.sandbox import Sandbox

#: Route -> the upstream's address.
ADDRESSES = {
    GENERATIONS: "/backend-api/codex/images/generations",
    EDITS: "/backend-api/codex/images/edits",
    TRANSCRIPTIONS: "/backend-api/transcribe",
}
#: More of these are refused at a time.
AT_ONCE = 2


async def ask(table: Table, route: str, prompt: str) -> Answer:
    if route == GENERATIONS:
        return await send(table.live, route, {"prompt": prompt})
    form = edit(prompt=prompt) if route == EDITS else recording(b"RIFF0000WAVE" + prompt.encode())
    return await send(table.live, route, form.body, form.content_type)


@pytest.mark.parametrize("route", ADDRESSES)
async def test_a_damaged_answer_is_an_error_or_the_good_one(sandbox: Sandbox, tmp_path: Path, route: str) -> None:
    async with table_of(sandbox, tmp_path, P1, **SWITCHES) as table:
        kept = table.tapes.keep[ADDRESSES[route]] = []
        good = await ask(table, route, "a fox")
        assert good.status == 200, good.raw
        found, failures, numbers = whole_places(kept[0]), list[str](), itertools.count(1)
        gate, table.before = asyncio.Semaphore(AT_ONCE), asyncio.all_tasks()

        async def run(place: str, at: int, damage: str) -> None:
            number = next(numbers)
            row = table.tapes.rows[number] = Row(kept[0], at, damage)
            try:
                async with gate, asyncio.timeout(BOUND_S):
                    # a connection that was closed behind the answer before may be met first
                    while not row.attempts:
                        answer = await ask(table, route, f"row-{number}- a fox")
                        assert answer.status == 200 or refusal(answer)[0] == 502
                content = (answer.raw.decode(), []) if answer.status == 200 else None
                judge(row, found.complete, (good.raw.decode(), []), content)
                assert row.attempts == 1, "it costs, and is not asked for again"
            except Exception as error:
                failures.append(f"{damage} {place}: {error!r}"[:400])

        async with asyncio.TaskGroup() as group:
            for (place, at), damage in itertools.product(found.classes.items(), DAMAGES):
                if (damage, at) != ("stall", len(kept[0])):  # silence behind a whole answer is no damage
                    group.create_task(run(place, at, damage))
        assert not failures, "\n".join(sorted(failures))
        await table.nothing_left()
