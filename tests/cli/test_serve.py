"""`serve` where no process is needed for it; the rest is in `tests/process`."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Live

from proxy.cli import serve
from proxy.config import Config, ConfigError
from proxy.sandbox import Sandbox
from proxy.server.listener import Listener


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    found = gc.get_threshold()
    yield found
    gc.set_threshold(*found)


async def test_a_process_of_its_own_collects_garbage_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[None] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(None))
    before, warmed = gc.get_threshold(), asyncio.Event()
    gc.disable()
    async with serve._sparing(warmed):
        await asyncio.sleep(0)
        assert not (frozen or gc.isenabled())
        warmed.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert frozen and gc.isenabled() and gc.get_threshold() == (serve.GARBAGE, *before[1:])


async def test_a_program_that_embeds_the_proxy_collects_as_it_likes(
    sandbox: Sandbox, tmp_path: Path, thresholds: tuple[int, int, int]
) -> None:
    async with Live(sandbox, tmp_path) as live:
        assert (await live.get("/healthz")).status == 200
        assert gc.get_threshold() == thresholds


async def test_of_a_taken_port_it_is_said_by_whom_and_what_to_do(sandbox: Sandbox, tmp_path: Path) -> None:
    async def gone(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with Live(sandbox, tmp_path) as live, await asyncio.start_server(gone, "127.0.0.1", 0) as other:
        for port, why in (
            (
                int(live.url.rpartition(":")[2]),
                f"a model-proxy answers there already. Use that one (`model-proxy monitor --url {live.url}`",
            ),
            (other.sockets[0].getsockname()[1], "another program uses it. End that, or take another port with --port"),
        ):
            config = Config(port=port)
            with pytest.raises(ConfigError, match=f"^failed to bind proxy listener 127.0.0.1:{port}: ") as caught:
                await serve._listen(Listener(live.app, config, 0.0), config)
            assert why in caught.value.message
