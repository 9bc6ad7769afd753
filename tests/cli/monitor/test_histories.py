"""Where the monitor on the terminal gets the history from."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from proxy import Config, create_app
from proxy.cli.monitor.histories import of_application, of_demo, on_loop
from proxy.errors import ProxyError
from proxy.observe.history.demo import write_demo
from proxy.observe.history.overview_rows import overview_rows
from proxy.server.request.state import STATE

NOW = 1_787_140_800.0
EDGES = [NOW - 30 * 86_400, NOW]


async def read(tmp_path: Path, *, kept: bool = True) -> Any:
    """What the application whose file is in this folder knows."""
    config = Config(history=kept)
    app = create_app(lambda: config, config_dir=tmp_path, state_dir=tmp_path, clock=lambda: NOW)
    return await of_application(app[STATE])(EDGES)


async def test_the_file_of_the_application_is_read(tmp_path: Path) -> None:
    write_demo(tmp_path / "history.db", NOW)
    assert overview_rows(await read(tmp_path)).whole.requests > 1_000


async def test_a_file_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ProxyError, match="there is none yet"):
        await read(tmp_path)
    (tmp_path / "history.db").write_bytes(b"garbage" * 1_000)
    with pytest.raises(ProxyError, match="damaged"):
        await read(tmp_path)
    with pytest.raises(ProxyError, match="PROXY_HISTORY=1"):
        await read(tmp_path, kept=False)


async def test_the_demo_has_a_history_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    now = time.time()
    async with of_demo() as asked:
        told = overview_rows(await asked([now - 86_400, now + 900]))
        assert list(tmp_path.iterdir())
    assert told.whole.requests > 50 and told.windows
    assert not list(tmp_path.iterdir())
    async with of_demo():
        pass  # it ends while the file is being written
    assert not list(tmp_path.iterdir())


async def test_another_thread_asks_on_the_loop() -> None:
    async def answer(edges: Sequence[float]) -> Any:
        return sum(edges)

    ask = on_loop(answer)
    asked = await asyncio.to_thread(ask, [1.0, 2.0])
    assert await asyncio.wrap_future(asked) == 3.0


def test_nobody_is_asked_once_the_loop_has_ended() -> None:
    async def answer(edges: Sequence[float]) -> Any:
        return edges

    async def inside() -> Any:
        return on_loop(answer)

    with pytest.raises(CancelledError):
        asyncio.run(inside())([1.0]).result(1)
