"""Imports what an ordinary request needs, in the background after the start.

A start is quick because nothing of that is read before the listener is open, and the first request because it is read
by then. One that comes earlier imports what it needs itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from proxy.later import Later
from proxy.off_loop import imported
from proxy.providers.upstream.aiohttp_internals import ready_for_tls
from proxy.server.request.families import MEDIA
from proxy.server.request.state import AppState

#: Seconds that the start has to itself.
START_S = 0.1


@asynccontextmanager
async def warming(state: AppState) -> AsyncIterator[None]:
    """Warms up while the application runs, until all is there."""
    task = asyncio.create_task(_warm_up(state))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _warm_up(state: AppState) -> None:
    try:
        await asyncio.sleep(START_S)
        await ready_for_tls()
        for function in _ordinary(state):
            try:
                await imported(function)
            except Exception as error:  # also that of each request that needs it; others need the rest
                state.log.write("error", "server", "internal_error", error=type(error).__name__)
    finally:
        state.warmed.set()


def _ordinary(state: AppState) -> Iterator[Later]:
    """The routes of model requests that are on, and the providers that somebody uses."""
    routes = [row.handler for row in state.routes.values() if row.endpoint and row.family is not MEDIA]
    used = state.accounts.used()
    builds = [entry.build for entry in state.entries if entry.label in used]
    return (one for one in (*routes, *builds) if isinstance(one, Later))
