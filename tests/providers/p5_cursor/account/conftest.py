from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from cursor_account import World
from oauth_accounts import Clock

from proxy.sandbox import Sandbox


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = Clock()
    async with Sandbox(clock=clock) as sandbox, aiohttp.ClientSession() as session:
        yield World(tmp_path / "config", sandbox, session, clock)
