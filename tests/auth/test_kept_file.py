"""When a kept file is written. What is in it, its users' tests say."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from proxy.auth.kept_file import KeptFile
from proxy.observe.lifecycle import NullLog


async def test_the_last_version_is_the_one_that_stays(tmp_path: Path) -> None:
    """Closing waits for a write that has begun."""
    values, begun, go = ["old"], asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def writer(path: Path) -> Callable[[], None]:
        text = values[-1]

        def write() -> None:
            loop.call_soon_threadsafe(begun.set)
            assert go.wait(5)
            path.write_text(text)

        return write

    file = KeptFile(tmp_path / "f", "values", 0.0, writer, NullLog(), asyncio.sleep)
    file.changed()
    await begun.wait()
    values.append("new")
    file.changed()
    closing = asyncio.create_task(file.close())
    await asyncio.sleep(0)
    go.set()
    await closing
    assert (tmp_path / "f").read_text() == "new"
    file.changed()
    assert len(asyncio.all_tasks()) == 1  # nothing more is written
