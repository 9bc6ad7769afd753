"""Whom a background proxy is for, and when it ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proxy.cli.launch.users import POLL_S, UNUSED_S, Users, stop_when_unused
from proxy.config import ConfigError


@pytest.fixture
def users(tmp_path: Path) -> Users:
    return Users(tmp_path / "18765")


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_processes_that_ended_use_nothing(users: Users) -> None:
    assert not users.any()
    users.only(ended_process())
    assert not users.any()
    users.add(os.getpid())
    assert users.any() and Users(users.path).any()
    users.only(ended_process())
    assert not users.any()


def test_an_id_that_was_seen_to_have_ended_is_not_taken_for_another_process(
    users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = ended_process()
    users.only(gone)
    assert not users.any()
    monkeypatch.setattr(os, "kill", lambda _process, _signal: None)  # its id is given again
    assert not users.any() and Users(users.path).any()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\n", b"-1\n", b"1e9\nx\n", b"99999999999999999999\n"])
def test_what_is_no_process_uses_nothing(users: Users, content: bytes) -> None:
    users.path.write_bytes(content)
    assert not users.any()


def test_one_start_at_a_time(users: Users) -> None:
    with users.locked(), pytest.raises(ConfigError, match="another start has been under way"), other(users).locked(0.0):
        raise AssertionError("both")
    with other(users).locked(0.0):
        pass


def other(users: Users) -> Users:
    return Users(users.path)


@dataclass
class Server:
    """What is looked at of the server. `busy`: looks at which it has a connection, or a new request."""

    connections: list[Any] = field(default_factory=list)
    requests_count: int = 0


LOOKS = int(UNUSED_S / POLL_S)


@pytest.mark.parametrize(
    ("connected", "asked", "looks"),
    [
        ((), (), LOOKS + 1),  # the first only counts the requests
        ((3,), (), LOOKS + 3),
        ((), (5,), LOOKS + 5),
        ((2, 4), (4,), LOOKS + 4),
    ],
)
async def test_a_proxy_ends_when_nobody_used_it_for_a_while(
    users: Users, connected: tuple[int, ...], asked: tuple[int, ...], looks: int
) -> None:
    server, stop, seen = Server(), asyncio.Event(), 0

    async def sleep(seconds: float) -> None:
        nonlocal seen
        assert seconds == POLL_S
        seen += 1
        server.connections = [object()] if seen in connected else []
        server.requests_count += seen in asked

    users.only(ended_process())
    await stop_when_unused(users, server, stop, sleep=sleep)  # type: ignore[arg-type]
    assert stop.is_set() and seen == looks
    users.release()
    server, stop, seen = Server(), asyncio.Event(), -100
    await stop_when_unused(users, server, stop, 2 * POLL_S, sleep=sleep)  # type: ignore[arg-type]
    assert seen == -97, "no longer than it was told to"
    assert not other(users).take(), "whoever comes now waits until it has ended"
    users.release()


async def test_a_launcher_that_is_about_to_use_it_keeps_it(users: Users) -> None:
    """It holds the lock while it looks whether a proxy answers, and is a user before it lets go."""
    server, stop, launcher, looks = Server(), asyncio.Event(), other(users), 0

    async def sleep(_seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == LOOKS:
            assert launcher.take()
        elif looks == LOOKS + 5:
            launcher.add(os.getpid())
            launcher.release()
        elif looks == 3 * LOOKS:
            stop.set()

    users.only(ended_process())
    await stop_when_unused(users, server, stop, sleep=sleep)  # type: ignore[arg-type]
    assert looks == 3 * LOOKS
