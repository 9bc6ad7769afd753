"""A log in a fresh directory, a clock that stands still and a stderr that remembers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.observe.log.file_log import FileLog

NOON = 1_787_140_800.0  # 2026-08-19T12:00:00Z


class Clock:
    """Seconds since 1970; moves when told to."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The state root; does not exist yet."""
    return tmp_path / "above" / "state"


@pytest.fixture
def terminal() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def make_log(root: Path, clock: Clock, terminal: io.StringIO) -> Iterator[Callable[..., FileLog]]:
    """Builds logs on `root` and closes them in the end."""
    logs: list[FileLog] = []

    def make(**options: Any) -> FileLog:
        logs.append(FileLog(root, **{"clock": clock, "stream": terminal, **options}))
        return logs[-1]

    yield make
    for log in logs:
        assert log.close()


@pytest.fixture
def log(make_log: Callable[..., FileLog]) -> FileLog:
    return make_log()


def records(root: Path) -> list[dict[str, Any]]:
    """The records in the log file."""
    return [json.loads(line) for line in (root / "proxy.log").read_text().split("\n")[:-1]]
