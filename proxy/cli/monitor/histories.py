"""Where the monitor on the terminal gets the history from: the running application, another proxy, simulated traffic.
All of them are asked on the event loop, by the thread that draws."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxy.observe.history.queries import Queries
    from proxy.observe.monitor.terminal.history_reader import Ask
    from proxy.server.request.state import AppState

#: Reads the overview between some edges. Raises ProxyError.
Read = Callable[[Sequence[float]], Coroutine[Any, Any, Any]]


def on_loop(read: Read) -> Ask:
    """Makes a question for another thread of one for the running event loop."""
    loop = asyncio.get_running_loop()

    def ask(edges: Sequence[float]) -> Future[Any]:
        answer = read(edges)
        try:
            return asyncio.run_coroutine_threadsafe(answer, loop)
        except RuntimeError:  # the loop has ended
            answer.close()
            ended: Future[Any] = Future()
            ended.cancel()
            return ended

    return ask


def of_application(state: AppState) -> Read:
    """Reads the file of the application of this process."""
    from proxy.server.routes.history import not_kept

    async def read(edges: Sequence[float]) -> Any:
        if state.history is None:
            raise not_kept(state)
        return await _overview(state.queries, state.history, edges, state.clock())

    return read


@asynccontextmanager
async def of_demo() -> AsyncIterator[Read]:
    """Reads simulated requests from a file that goes away."""
    from proxy.observe.history.demo import write_demo
    from proxy.observe.history.queries import Queries
    from proxy.observe.history.schema import FILE_NAME

    queries = Queries()
    with TemporaryDirectory(prefix="model-proxy-demo-") as folder:
        path = Path(folder, FILE_NAME)
        writing = asyncio.create_task(asyncio.to_thread(write_demo, path, time.time()))

        async def read(edges: Sequence[float]) -> Any:
            await asyncio.shield(writing)
            return await _overview(queries, path, edges, time.time())

        try:
            yield read
        finally:
            await asyncio.wait([writing])


async def _overview(queries: Queries, path: Path, edges: Sequence[float], now: float) -> Any:
    from proxy.observe.history.overview import overview

    return await queries.ask(path, lambda db: overview(db, edges, now), lambda: False)
