"""A proxy that asks a backend of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from harness import Live
from talks import Talk
from ws_upstream import Backend, running_backend

from proxy.sandbox import Sandbox


@pytest.fixture
async def backend(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Backend]:
    async with running_backend(sandbox, tmp_path) as running:
        yield running


@pytest.fixture
async def front(backend: Backend, live_options: dict[str, Any]) -> AsyncIterator[Live]:
    """A proxy in front of the backend; over sockets, unless the options name another `mode`."""
    async with backend.proxy(**live_options) as live:
        yield live


@pytest.fixture
def talk(front: Live) -> Talk:
    return Talk(front)
