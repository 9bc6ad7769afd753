"""The official Python SDK as a client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anthropic
import pytest
from harness import Live


@pytest.fixture
async def sdk(live: Live) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(api_key="unused", base_url=live.url, max_retries=0) as client:
        yield client
