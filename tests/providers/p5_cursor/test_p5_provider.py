"""P5 as the server sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Live, ask

from proxy.providers.p5_cursor.provider import machine_here
from proxy.sandbox import Sandbox


async def test_a_directory_that_was_removed_keeps_nobody_from_starting(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with monkeypatch.context() as moved:
        moved.chdir(gone)
        gone.rmdir()
        assert machine_here().workspace == ""
        async with Live(sandbox, tmp_path / "config") as live:
            assert (await live.post(ask(model="cursor"))).status == 200
