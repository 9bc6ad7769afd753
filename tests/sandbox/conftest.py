from collections.abc import AsyncIterator

import aiohttp
import pytest
from families import FAMILIES, Asker
from p1_sandbox_client import Client, P3Client, SocketClient
from p2_sandbox_client import P2Client
from p4_sandbox_client import P4Client
from p5_sandbox_client import P5Client

from proxy.sandbox import Sandbox


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as running:
        yield running


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as running:
        yield running


@pytest.fixture
def client(sandbox: Sandbox, session: aiohttp.ClientSession) -> Client:
    return Client(sandbox, session)


@pytest.fixture
def sockets(sandbox: Sandbox, session: aiohttp.ClientSession) -> SocketClient:
    return SocketClient(sandbox, session)


@pytest.fixture
def kimi(sandbox: Sandbox, session: aiohttp.ClientSession) -> P2Client:
    return P2Client(sandbox, session)


@pytest.fixture
def grok(sandbox: Sandbox, session: aiohttp.ClientSession) -> P3Client:
    return P3Client(sandbox, session)


@pytest.fixture
def go(sandbox: Sandbox, session: aiohttp.ClientSession) -> P4Client:
    return P4Client(sandbox, session)


@pytest.fixture
def cursor(sandbox: Sandbox, session: aiohttp.ClientSession) -> P5Client:
    return P5Client(sandbox, session)


CLIENTS = {"p1": Client, "p2": P2Client, "p3": P3Client, "p4": P4Client}


@pytest.fixture(params=FAMILIES, ids=str)
def asker(request: pytest.FixtureRequest, sandbox: Sandbox, session: aiohttp.ClientSession) -> Asker:
    """Every upstream on every wire; `indirect` names fewer."""
    return Asker(request.param, CLIENTS[request.param.label](sandbox, session))
