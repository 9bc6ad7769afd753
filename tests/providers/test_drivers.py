"""Every fault of the wires, and every answer on disk, comes out the same by the pump and by the generators: to the
byte, and in attempts, waits, and what log and monitor were told."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from byte_tapes import Row, Tapes
from core.vector_cases import ANSWERS, read
from drivers import MESSAGES, Compared, Fault, Played, behind, known_of, play_fault, post
from harness import Live, ask
from openai_live import CHAT, RESPONSES
from outcomes import Refused
from paced import paced
from raw_upstream import chunk, head
from samples import Extent, sampled, walk
from test_wire_faults import TABLES
from wires import BODY_WIRES, TOOLS, Wire

from proxy.sandbox import Sandbox

ROUTES = (MESSAGES, CHAT, RESPONSES)
#: Seconds each, and no more events than others.
LONG = ("huge_frame",)
Case = tuple[Wire, str, Fault]


def differs(wire: Wire, path: str, fault: Fault) -> Sequence[Hashable]:
    """What makes a difference: each fault, and each wire on each route."""
    return fault[0], (wire.name, path)


@cache
def cases() -> list[Case]:
    """A sample leaves out what is refused, and what is asked for again: nothing flows in front of such a fault."""
    crossed = (
        (wire, path, (fault, params))
        for path in ROUTES
        for wire in BODY_WIRES
        for fault, params, outcome in TABLES[wire.name]
        if fault not in LONG and (Extent.everything or (outcome.attempts == 1 and not isinstance(outcome, Refused)))
    )
    return sampled(crossed, 1, differs)


@pytest.mark.parametrize("wire", BODY_WIRES, ids=str)
async def test_a_fault_comes_out_the_same_by_each_driver(tmp_path: Path, wire: Wire) -> None:
    compared = Compared()
    async with behind(tmp_path) as live:
        with walk() as row:
            for asked, path, fault in cases():
                if asked == wire:
                    with row((wire.name, path, fault)):
                        await compared.same(partial(play_fault, live, wire, path, fault))
    compared.are_different()


# -- the answers on disk

_EVENT = re.compile(rb".+?(?:\n\n|\r\n\r\n|\r\r|\Z)", re.DOTALL)
#: folder of vectors -> who reads such an answer
READERS = {"chat_to_messages": ("p2-chat", "p4-chat"), "responses_to_messages": ("p3-responses", "p4-responses")}
VECTORS = [
    (wire, name, case)
    for name, answers in ANSWERS.items()
    for wire in BODY_WIRES
    if wire.name in READERS[name]
    for case in answers.cases()
]


def tape_of(name: str, case: str) -> bytes:
    """The answer as a body in which each event has its own chunk."""
    pieces = _EVENT.findall(ANSWERS[name].raw(case))
    return head("transfer-encoding: chunked") + b"".join(map(chunk, pieces)) + chunk(b"")


def request_of(name: str, case: str, number: int, **members: Any) -> dict[str, Any]:
    """What the answer belongs to, as far as it is no conversation."""
    path = ANSWERS[name].folder / f"{case}.json"
    context = read(path).get("request", {}) if path.exists() else {}
    own = {key: context[key] for key in ("tools", "stop_sequences") if key in context}
    return {**ask(f"row-{number}-", tools=TOOLS, stream=True), **own, **members}


@pytest.mark.parametrize("wire", [wire for wire in BODY_WIRES if wire.kind != "messages"], ids=str)
async def test_an_answer_on_disk_comes_out_the_same_by_each_driver(
    sandbox: Sandbox, tmp_path: Path, wire: Wire
) -> None:
    compared, vectors = Compared(), [row for row in VECTORS if row[0] == wire]
    async with Tapes(sandbox.port) as tapes, paced(tapes.port) as relay:
        settings = {
            key: value.replace(f":{sandbox.port}", f":{relay.port}") if "BASE" in key else value
            for key, value in sandbox.settings().items()
        }
        async with Live(sandbox, tmp_path, settings=settings, clock=lambda: 1_790_000_000.0) as live:
            with walk() as row:
                for number, (_, name, case) in enumerate(vectors if Extent.everything else vectors[::4]):
                    with row((name, case)):
                        body = request_of(name, case, number, model=wire.model)
                        await compared.same(partial(said, live, tapes, number, tape_of(name, case), body))
    compared.are_different()


async def said(live: Live, tapes: Tapes, number: int, tape: bytes, body: dict[str, Any]) -> Played:
    live.forget()
    tapes.rows[number] = row = Row(tape, len(tape), "")
    answer = await post(live, body, MESSAGES)
    assert not live.notes.all("internal_error")
    return Played(answer.status, answer.raw, row.attempts, **known_of(live))
