"""The lock between processes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from pathlib import Path

import pytest

from proxy.auth.lock import LOCK_POLL_S, locked
from proxy.errors import UpstreamError


async def test_second_holder_waits_for_the_first(tmp_path: Path) -> None:
    path, order = tmp_path / "l", []
    released = asyncio.Event()

    async def second() -> None:
        async def sleep(seconds: float) -> None:
            assert seconds == LOCK_POLL_S
            order.append("wait")
            released.set()
            await asyncio.sleep(0)

        async with locked(path, label="p1", sleep=sleep):
            order.append("second")

    async with locked(path, label="p1"):
        task = asyncio.create_task(second())
        await released.wait()
        order.append("first done")
    await task
    assert order[0] == "wait" and order.index("first done") < order.index("second") == len(order) - 1


async def test_waiting_is_bounded_and_says_so(tmp_path: Path) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with locked(tmp_path / "l", label="p1"):
        with pytest.raises(UpstreamError, match="Another process has been holding the p1 sign-in") as caught:
            async with locked(tmp_path / "l", label="p1", wait_s=2.0, sleep=sleep):
                raise AssertionError("the lock is taken")
    assert caught.value.status == 503
    assert sum(waits) == pytest.approx(2.0)


async def test_lock_is_free_after_an_error_and_after_cancellation(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        async with locked(tmp_path / "l", label="p1"):
            raise KeyError
    async with locked(tmp_path / "l", label="p1"):
        waiter = asyncio.create_task(_hold(tmp_path / "l"))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait({waiter})
    await asyncio.wait_for(_hold(tmp_path / "l"), 10)


async def _hold(path: Path) -> None:
    async with locked(path, label="p1"):
        pass


@pytest.mark.parametrize(("code", "works"), [(errno.ENOLCK, True), (errno.ENOTSUP, True), (errno.EIO, False)])
async def test_file_system_without_locks_is_accepted(tmp_path: Path, code: int, works: bool) -> None:
    def fail(_fd: int) -> None:
        raise OSError(code, "x")

    with contextlib.nullcontext() if works else pytest.raises(OSError, match="x"):
        async with locked(tmp_path / "l", label="p1", lock=fail):
            assert works
