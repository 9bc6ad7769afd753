"""The runs of all conversations: at most one each, answering or waiting for a tool of its client."""

from __future__ import annotations

import asyncio

from proxy.core.identity import Owner
from proxy.errors import UpstreamError
from proxy.providers.p5_cursor.failures import PROFILE
from proxy.providers.p5_cursor.run.run import Run

#: Each run holds a connection open. When there are more, the one that has waited longest is closed.
MAX_OPEN_RUNS = 256


def superseded() -> UpstreamError:
    """The error of a request that is not the newest one of its conversation."""
    words = "the conversation went on in a newer request of its session, which ended this answer"
    return PROFILE.error(words, kind="upstream", status=409, repeatable=False, final=True)


class OpenRuns:
    """The open runs by owner. A run that waited too long reports that itself, see `silent`."""

    def __init__(self, *, most: int = MAX_OPEN_RUNS) -> None:
        self._most = most
        self._runs: dict[Owner, Run] = {}
        self._closing: dict[Run, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def closing(self) -> int:
        """The number of runs that are being closed."""
        return len(self._closing)

    def find(self, owner: Owner | None) -> Run | None:
        """The run of a conversation."""
        return self._runs.get(owner) if owner is not None else None

    def put(self, owner: Owner, run: Run) -> None:
        """Makes this the run of the conversation. Another one is closed, and its holder informed."""
        other = self.find(owner)
        if other is not None and other is not run:
            self._end(owner, other)
        self._runs[owner] = run
        self._make_room()

    def remove(self, run: Run) -> None:
        """Removes a run that is no longer needed; it is closed in the background."""
        for owner, found in list(self._runs.items()):
            if found is run:
                del self._runs[owner]
        if run not in self._closing:
            task = self._closing[run] = asyncio.create_task(run.close())
            task.add_done_callback(lambda _: self._closing.pop(run))

    def silent(self, run: Run) -> None:
        """Handles the end of a run's messages from the service: a waiting run has become useless."""
        if run.offered is not None and run.lost:
            self.remove(run)

    async def close(self) -> None:
        """Closes all runs."""
        for run in list(self._runs.values()):
            self.remove(run)
        if self._closing:
            await asyncio.wait(self._closing.values())

    def _end(self, owner: Owner, run: Run) -> None:
        del self._runs[owner]
        held = run.offered is None
        self.remove(run)
        if held:
            run.fail(superseded())

    def _make_room(self) -> None:
        """Closes the longest waiting runs while there are too many; answering ones stay."""
        if len(self._runs) <= self._most:
            return
        waiting = [(run.offered.since, owner, run) for owner, run in self._runs.items() if run.offered is not None]
        if waiting:
            _, owner, run = min(waiting, key=lambda one: one[0])
            self._end(owner, run)
