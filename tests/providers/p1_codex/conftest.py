"""A proxy that asks a backend of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness import Live
from ws_upstream import Asking, Backend, running_backend

from proxy.providers.p1_codex.socket import turn_continuation as sockets
from proxy.providers.p1_codex.socket.keepalive import Timers
from proxy.sandbox import Sandbox


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    async with running_backend() as running:
        yield running


@pytest.fixture
def asking(backend: Backend, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    """`asking(mode, timers={…}, **config)`: a proxy in front of the backend; signs in at the sandbox."""

    @asynccontextmanager
    async def open_live(
        mode: str = "websocket", *, timers: dict[str, float] | None = None, **config: Any
    ) -> AsyncIterator[Live]:
        monkeypatch.setattr(sockets, "Timers", partial(Timers, **(timers or {})))
        async with Live(sandbox, tmp_path, p1_base_url=backend.url, p1_transport=mode, **config) as live:
            yield live

    return open_live
