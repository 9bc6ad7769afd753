"""Every fault of P1 over HTTP comes out the same by the pump and by the generators."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import pytest
from drivers import MESSAGES, Compared, Fault, behind, play_fault
from openai_live import CHAT
from outcomes import Refused
from p1_faults import HTTP, SHARED
from samples import Extent, sampled, walk
from wires import Wire

P1 = Wire("p1", "responses", "gpt-5.5")
#: On the Responses route the upstream's own events are passed on.
ROUTES = (MESSAGES, CHAT)
#: Seconds each; and what is told differently once it was learnt.
LEFT_OUT = ("huge_frame", "usage_limit")


@cache
def cases() -> list[tuple[str, Fault]]:
    crossed = (
        (path, (fault, params))
        for path in ROUTES
        for fault, params, outcome in (*SHARED, *HTTP)
        if fault not in LEFT_OUT and (Extent.everything or (outcome.attempts == 1 and not isinstance(outcome, Refused)))
    )
    return sampled(crossed, 1, lambda path, fault: (path, fault[0]))


@pytest.mark.parametrize("path", ROUTES)
async def test_a_fault_comes_out_the_same_by_each_driver(tmp_path: Path, path: str) -> None:
    compared = Compared()
    async with behind(tmp_path) as live:
        with walk() as row:
            for route, fault in cases():
                if route == path:
                    with row(fault):
                        await compared.same(partial(play_fault, live, P1, path, fault))
    compared.are_different()
