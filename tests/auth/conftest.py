from __future__ import annotations

from pathlib import Path

import pytest
from refresh_world import World, granted


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Its issuer grants one renewal."""
    return World(tmp_path, granted())
