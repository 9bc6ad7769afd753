"""A world for the account that a test, or its module, names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from oauth_accounts import Clock, OAuthAccount, World

from proxy.sandbox import Sandbox


@pytest.fixture
async def world(tmp_path: Path, account: OAuthAccount) -> AsyncIterator[World]:
    clock = Clock()
    async with Sandbox(clock=clock) as sandbox, aiohttp.ClientSession() as session:
        yield World(account, tmp_path, sandbox, clock, session)


def pytest_make_parametrize_id(val: object) -> str | None:
    return str(val) if isinstance(val, OAuthAccount) else None
