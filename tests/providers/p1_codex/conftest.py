"""A proxy that asks a backend of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import Live
from ws_upstream import Asking, Backend, running_backend

from proxy.providers.p1_codex.socket.keepalive import SocketTimers
from proxy.sandbox import Sandbox


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    async with running_backend() as running:
        yield running


@pytest.fixture
def asking(backend: Backend, sandbox: Sandbox, tmp_path: Path) -> Asking:
    """`asking(mode, timers={…}, tuning=(…), **config)`: a proxy in front of the backend; signs in at the sandbox."""

    @asynccontextmanager
    async def open_live(
        mode: str = "websocket",
        *,
        timers: dict[str, float] | None = None,
        tuning: tuple[object, ...] = (),
        **config: Any,
    ) -> AsyncIterator[Live]:
        tuned = (SocketTimers(**(timers or {})), *tuning)
        async with Live(sandbox, tmp_path, p1_base_url=backend.url, p1_transport=mode, tuning=tuned, **config) as live:
            yield live

    return open_live
