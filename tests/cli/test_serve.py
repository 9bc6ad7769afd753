"""`serve` where no process is needed for it; the rest is in `tests/process`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Live

from proxy.cli import serve
from proxy.sandbox import Sandbox


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    found = gc.get_threshold()
    yield found
    gc.set_threshold(*found)


def test_a_process_of_its_own_collects_garbage_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[None] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(None))
    before = gc.get_threshold()
    serve._spare_collections()
    assert frozen and gc.get_threshold() == (serve.GARBAGE, *before[1:])


async def test_a_program_that_embeds_the_proxy_collects_as_it_likes(
    sandbox: Sandbox, tmp_path: Path, thresholds: tuple[int, int, int]
) -> None:
    async with Live(sandbox, tmp_path) as live:
        assert (await live.get("/healthz")).status == 200
        assert gc.get_threshold() == thresholds
