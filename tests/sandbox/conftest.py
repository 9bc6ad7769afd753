from collections.abc import AsyncIterator

import aiohttp
import pytest
from p1_sandbox_client import Client

from proxy.sandbox import Sandbox


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as running:
        yield running


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(sandbox, session)
