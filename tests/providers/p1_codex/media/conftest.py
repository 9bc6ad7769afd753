"""A proxy in front of the simulated media services, asked at its provider."""

from __future__ import annotations

import pytest
from harness import Live
from media_world import World


@pytest.fixture
def media(live: Live) -> World:
    return World(live)
